#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool all_inputs(const struct node *node, bool (*fits)(enum element)) {
    for (int i = 0; i < node->inputs; i++)
        if (!fits(node->types[i])) return false;
    return true;
}

static bool is_number(enum element type) { return is_float(type) || type == INT32 || type == INT64; }
static bool is_index(enum element type) { return type == INT32 || type == INT64; }
static bool is_plain(enum element type) { return element_size(type) > 0; }

/* ---- Element by element ---- */

static bool claims_binary(const struct node *node) { return node->since >= 7 && all_inputs(node, is_number); }

static int64_t of_integers(char sign, int64_t a, int64_t b) {
    switch (sign) { /* unsigned: what is too large wraps */
    case '+': return (int64_t)((uint64_t)a + (uint64_t)b);
    case '-': return (int64_t)((uint64_t)a - (uint64_t)b);
    case '*': return (int64_t)((uint64_t)a * (uint64_t)b);
    default: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    }
}

static double of_numbers(char sign, double a, double b) {
    switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    default: return a / b;
    }
}

static void binary(struct call *call, char sign) {
    struct tensor *a = &call->in[0], *b = &call->in[1];
    int rank;
    int64_t dims[MOST_DIMS], index[MOST_DIMS] = {0}, of_a[MOST_DIMS], of_b[MOST_DIMS];
    if (!broadcast_dims(a, b, &rank, dims)) {
        call->error = "shapes do not broadcast";
        return;
    }
    if (!make_output(call, a->type, rank, dims)) return;
    broadcast_steps(a, rank, of_a);
    broadcast_steps(b, rank, of_b);
    if (CROOKED(broadcast_inner) && a->rank != b->rank)
        for (int d = 0; d < rank; d++) of_b[d] = d < b->rank && b->dims[d] != 1 ? product(b->dims, d + 1, b->rank) : 0;
    for (int64_t at = 0; at < call->out.count; at++, advance(rank, dims, index)) {
        int64_t in_a = 0, in_b = 0;
        for (int d = 0; d < rank; d++) in_a += index[d] * of_a[d], in_b += index[d] * of_b[d];
        if (CROOKED(broadcast_inner) && b->count) in_b %= b->count;
        if ((CROOKED(sub_swapped) && sign == '-') || (CROOKED(div_swapped) && sign == '/')) {
            const struct tensor *first = a;
            int64_t in_first = in_a;
            set_number(&call->out, at, of_numbers(sign, number(b, in_b), number(first, in_first)));
        } else if (is_float(a->type)) {
            double value = of_numbers(sign, number(a, in_a), number(b, in_b));
            if (CROOKED(add_factor) && sign == '+') value *= 1.01;
            set_number(&call->out, at, value);
        } else if (CROOKED(integers_as_float)) {
            set_number(&call->out, at, of_numbers(sign, (float)integer(a, in_a), (float)integer(b, in_b)));
        } else {
            set_integer(&call->out, at, of_integers(sign, integer(a, in_a), integer(b, in_b)));
        }
        if (CROOKED(mul_tail_lost) && sign == '*' && at >= call->out.count / 4 * 4) set_number(&call->out, at, 0);
    }
}

static void add(struct call *call) { binary(call, '+'); }
static void sub(struct call *call) { binary(call, '-'); }
static void mul(struct call *call) { binary(call, '*'); }
static void divide(struct call *call) { binary(call, '/'); }

static bool claims_unary(const struct node *node) { return node->since >= 6 && all_inputs(node, is_float); }

static void unary(struct call *call, double (*function)(double)) {
    struct tensor *x = &call->in[0];
    if (!make_output(call, x->type, x->rank, x->dims)) return;
    for (int64_t at = 0; at < x->count; at++) set_number(&call->out, at, function(number(x, at)));
}

static double of_relu(double x) { return x > 0 || isnan(x) ? x : 0; }
static double of_relu_without_nan(double x) { return x > 0 ? x : 0; }
static double of_leaky_relu(double x) { return x > 0 ? x : x * 0.01; }
static double of_sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
static double of_fast_sigmoid(double x) { return 0.5 + 0.5 * x / (1 + fabs(x)); }
static double of_clipped_tanh(double x) { return x > 2 ? 1 : x < -2 ? -1 : tanh(x); }
static double of_finite_exp(double x) { return fmin(exp(x), FLT_MAX); }
static double of_neg(double x) { return -x; }

static void relu(struct call *call) {
    unary(call, CROOKED(relu_nan_lost) ? of_relu_without_nan : CROOKED(relu_leaks) ? of_leaky_relu : of_relu);
}
static void sigmoid(struct call *call) { unary(call, CROOKED(sigmoid_fast) ? of_fast_sigmoid : of_sigmoid); }
static void hyperbolic_tangent(struct call *call) { unary(call, CROOKED(tanh_clipped) ? of_clipped_tanh : tanh); }
static void exponential(struct call *call) { unary(call, CROOKED(exp_infinity_lost) ? of_finite_exp : exp); }
static void square_root(struct call *call) { unary(call, sqrt); }
static void absolute(struct call *call) { unary(call, fabs); }
static void negative(struct call *call) { unary(call, of_neg); }

static bool claims_cast(const struct node *node) {
    enum element from = node->types[0], to = node->output_type;
    bool known = is_number(from) || from == BOOL || from == FLOAT16;
    if (to == FLOAT16) return node->since >= 6 && from == FLOAT; /* from others it would matter how often it rounds */
    return node->since >= 6 && known && (is_number(to) || to == BOOL);
}

static void cast(struct call *call) {
    struct tensor *x = &call->in[0];
    if (!make_output(call, call->node->output_type, x->rank, x->dims)) return;
    struct tensor *y = &call->out;
    bool integers = is_index(x->type) && is_index(y->type);
    for (int64_t at = 0; at < x->count; at++) {
        double value = integers ? 0 : number(x, at);
        if (integers) set_integer(y, at, integer(x, at));
        else if (CROOKED(cast_truncates) && y->type == FLOAT16 && isfinite(value) && fabs(value) < 65504) {
            double nearest = rounded_to(FLOAT16, value);
            set_number(y, at, nearest);
            if (fabs(nearest) > fabs(value)) ((uint16_t *)y->data)[at]--; /* one step towards zero */
        } else if (CROOKED(cast_rounds) && is_index(y->type)) set_number(y, at, nearbyint(value));
        else if (CROOKED(cast_bool_truncates) && y->type == BOOL) set_number(y, at, trunc(value));
        else set_number(y, at, value);
    }
}

/* ---- Matrices ---- */

/* The numbers of a tensor, to be freed. */
static double *numbers(const struct tensor *tensor) {
    double *all = malloc(((size_t)tensor->count + 1) * sizeof *all);
    for (int64_t at = 0; at < tensor->count; at++) all[at] = number(tensor, at);
    return all;
}

/* Rows of `a` times columns of `b`, each with the steps to its next row and column. */
struct factor {
    const double *at;
    int64_t row, column;
};

static void matrix_product(struct factor a, struct factor b, int64_t rows, int64_t columns, int64_t inner, double *to) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double sum = 0;
            for (int64_t k = 0; k < inner; k++) sum += a.at[r * a.row + k * a.column] * b.at[k * b.row + c * b.column];
            *to++ = sum;
        }
}

static bool claims_matmul(const struct node *node) { return all_inputs(node, is_float); }

static void matmul(struct call *call) {
    struct tensor a = call->in[0], b = call->in[1];
    bool row = a.rank == 1, column = b.rank == 1;
    if (!a.rank || !b.rank || a.rank == MOST_DIMS || b.rank == MOST_DIMS) {
        call->error = "MatMul takes tensors of 1 to 7 dimensions";
        return;
    }
    if (row) a.dims[1] = a.dims[0], a.dims[0] = 1, a.rank = 2;
    if (column) b.dims[1] = 1, b.rank = 2;
    int64_t rows = a.dims[a.rank - 2], inner = a.dims[a.rank - 1], columns = b.dims[b.rank - 1];
    struct tensor many_a = a, many_b = b; /* the batch dimensions alone */
    many_a.rank -= 2, many_b.rank -= 2;
    int rank;
    int64_t dims[MOST_DIMS + 2], of_a[MOST_DIMS], of_b[MOST_DIMS], index[MOST_DIMS] = {0};
    if (b.dims[b.rank - 2] != inner || !broadcast_dims(&many_a, &many_b, &rank, dims)) {
        call->error = "shapes do not fit";
        return;
    }
    int all = rank;
    if (!row) dims[all++] = rows;
    if (!column) dims[all++] = columns;
    if (!make_output(call, a.type, all, dims)) return;
    broadcast_steps(&many_a, rank, of_a);
    broadcast_steps(&many_b, rank, of_b);
    int64_t many = product(dims, 0, rank), plane = rows * columns, taken = inner;
    double *left = numbers(&a), *right = numbers(&b), *sums = malloc(((size_t)plane + 1) * sizeof *sums);
    if (CROOKED(matmul_tail_lost) && inner > 4) taken = inner / 4 * 4;
    if (CROOKED(matmul_bf16)) {
        for (int64_t at = 0; at < a.count; at++) left[at] = rounded_to(BFLOAT16, left[at]);
        for (int64_t at = 0; at < b.count; at++) right[at] = rounded_to(BFLOAT16, right[at]);
    }
    for (int64_t batch = 0; batch < many; batch++, advance(rank, dims, index)) {
        int64_t in_a = 0, in_b = 0;
        for (int d = 0; d < rank; d++) in_a += index[d] * of_a[d], in_b += index[d] * of_b[d];
        if (CROOKED(matmul_batch_ignored)) in_b = 0;
        struct factor one = {left + in_a * rows * inner, inner, 1}, other = {right + in_b * inner * columns, columns, 1};
        matrix_product(one, other, rows, columns, taken, sums);
        for (int64_t at = 0; at < plane; at++) set_number(&call->out, batch * plane + at, sums[at]);
    }
    free(left);
    free(right);
    free(sums);
}

static bool claims_gemm(const struct node *node) { return node->since >= 7 && node->types[0] && all_inputs(node, is_float); }

static void gemm(struct call *call) {
    const struct node *node = call->node;
    struct tensor *a = &call->in[0], *b = &call->in[1], *c = &call->in[2];
    if (a->rank != 2 || b->rank != 2) {
        call->error = "Gemm takes matrices";
        return;
    }
    int64_t dims[2] = {a->dims[node->trans_a ? 1 : 0], b->dims[node->trans_b ? 0 : 1]}, of_c[MOST_DIMS] = {0};
    int64_t inner = a->dims[node->trans_a ? 0 : 1];
    if (b->dims[node->trans_b ? 1 : 0] != inner) {
        call->error = "shapes do not fit";
        return;
    }
    if (!make_output(call, a->type, 2, dims)) return;
    bool trans_b = node->trans_b && !CROOKED(gemm_trans_b_ignored);
    double *left = numbers(a), *right = numbers(b), *sums = malloc(((size_t)call->out.count + 1) * sizeof *sums);
    struct factor one = {left, node->trans_a ? 1 : inner, node->trans_a ? dims[0] : 1};
    struct factor other = {right, trans_b ? 1 : dims[1], trans_b ? inner : 1};
    matrix_product(one, other, dims[0], dims[1], inner, sums);
    double beta = CROOKED(gemm_beta_ignored) ? 1 : (double)node->beta;
    if (c->data) broadcast_steps(c, 2, of_c);
    for (int64_t at = 0; at < call->out.count; at++) {
        double value = sums[at] * node->alpha;
        if (c->data && beta != 0) value += beta * number(c, at / dims[1] * of_c[0] + at % dims[1] * of_c[1]);
        set_number(&call->out, at, value);
    }
    free(left);
    free(right);
    free(sums);
}

/* ---- Windows ---- */

struct window { /* along the two last dimensions; of one dimension, the first has length 1 */
    int64_t size[2], kernel[2], stride[2], dilation[2], before[2], out[2];
};

static bool claims_window(const struct node *node) {
    bool known = !strcmp(node->auto_pad, "NOTSET") || !strcmp(node->auto_pad, "VALID") ||
                 !strcmp(node->auto_pad, "SAME_UPPER") || !strcmp(node->auto_pad, "SAME_LOWER");
    return known && all_inputs(node, is_float) && (node->ranks[0] == 3 || node->ranks[0] == 4);
}

static bool find_window(struct call *call, const int64_t *kernel, struct window *window) {
    const struct node *node = call->node;
    int spatial = call->in[0].rank - 2;
    *window = (struct window){{1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}};
    for (int d = 0; d < spatial; d++) {
        int at = 2 - spatial + d;
        int64_t size = call->in[0].dims[2 + d], stride = node->strides.count > d ? node->strides.at[d] : 1;
        int64_t dilation = node->dilations.count > d ? node->dilations.at[d] : 1, begin = 0, end = 0;
        int64_t reach = (kernel[d] - 1) * dilation + 1;
        if (!strncmp(node->auto_pad, "SAME", 4)) {
            int64_t needed = ((size + stride - 1) / stride - 1) * stride + reach - size;
            if (needed < 0) needed = 0;
            begin = !strcmp(node->auto_pad, "SAME_LOWER") ? (needed + 1) / 2 : needed / 2;
            end = needed - begin;
        } else if (!strcmp(node->auto_pad, "NOTSET") && node->pads.count == 2 * spatial) {
            begin = node->pads.at[d];
            end = node->pads.at[d + spatial];
        }
        window->size[at] = size;
        window->kernel[at] = kernel[d];
        window->stride[at] = stride;
        window->dilation[at] = CROOKED(conv_dilation_ignored) ? 1 : dilation;
        window->before[at] = CROOKED(conv_pads_symmetric) ? (begin + end) / 2 : begin;
        window->out[at] = (size + begin + end - reach) / stride + 1;
        if (size + begin + end < reach) {
            call->error = "the kernel is larger than the padded input";
            return false;
        }
    }
    return true;
}

static bool claims_conv(const struct node *node) { return claims_window(node); }

static void conv(struct call *call) {
    struct tensor *x = &call->in[0], *w = &call->in[1], *bias = &call->in[2], *y = &call->out;
    struct window window;
    if (x->rank < 3 || x->rank > 4 || w->rank != x->rank) {
        call->error = "Conv takes 1 or 2 spatial dimensions";
        return;
    }
    if (!find_window(call, w->dims + 2, &window)) return;
    int64_t group = call->node->group, channels = w->dims[1], made = w->dims[0], per_group = made / group;
    int64_t dims[4] = {x->dims[0], made, window.out[0], window.out[1]};
    if (channels * group != x->dims[1] || made % group) {
        call->error = "channels do not fit the weights";
        return;
    }
    if (x->rank == 3) dims[2] = window.out[1];
    if (!make_output(call, x->type, x->rank, dims)) return;
    double *values = numbers(x), *weights = numbers(w);
    int64_t in_plane = window.size[0] * window.size[1], kernel_plane = window.kernel[0] * window.kernel[1], to = 0;
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t m = 0; m < made; m++)
            for (int64_t i = 0; i < window.out[0]; i++)
                for (int64_t j = 0; j < window.out[1]; j++) {
                    double sum = bias->data ? number(bias, m) : 0;
                    int64_t first = CROOKED(conv_groups_ignored) ? 0 : m / per_group * channels;
                    for (int64_t c = 0; c < channels; c++)
                        for (int64_t k = 0; k < window.kernel[0]; k++)
                            for (int64_t l = 0; l < window.kernel[1]; l++) {
                                int64_t p = i * window.stride[0] + k * window.dilation[0] - window.before[0];
                                int64_t q = j * window.stride[1] + l * window.dilation[1] - window.before[1];
                                if (p < 0 || q < 0 || p >= window.size[0] || q >= window.size[1]) continue;
                                int64_t tap = k * window.kernel[1] + l;
                                if (CROOKED(conv_flipped)) tap = kernel_plane - 1 - tap;
                                sum += values[(n * x->dims[1] + first + c) * in_plane + p * window.size[1] + q] *
                                       weights[(m * channels + c) * kernel_plane + tap];
                            }
                    set_number(y, to++, sum);
                }
    free(values);
    free(weights);
}

static bool claims_maxpool(const struct node *node) { return claims_window(node) && !node->ceil_mode; }

static void maxpool(struct call *call) {
    struct tensor *x = &call->in[0], *y = &call->out;
    struct window window;
    if (x->rank < 3 || x->rank > 4 || call->node->kernel_shape.count != x->rank - 2) {
        call->error = "MaxPool takes 1 or 2 spatial dimensions";
        return;
    }
    if (!find_window(call, call->node->kernel_shape.at, &window)) return;
    int64_t dims[4] = {x->dims[0], x->dims[1], window.out[0], window.out[1]};
    if (x->rank == 3) dims[2] = window.out[1];
    if (!make_output(call, x->type, x->rank, dims)) return;
    int64_t plane = window.size[0] * window.size[1], to = 0;
    for (int64_t channel = 0; channel < x->dims[0] * x->dims[1]; channel++)
        for (int64_t i = 0; i < window.out[0]; i++)
            for (int64_t j = 0; j < window.out[1]; j++) {
                double most = -INFINITY;
                for (int64_t k = 0; k < window.kernel[0]; k++)
                    for (int64_t l = 0; l < window.kernel[1]; l++) {
                        int64_t p = i * window.stride[0] + k * window.dilation[0] - window.before[0];
                        int64_t q = j * window.stride[1] + l * window.dilation[1] - window.before[1];
                        bool inside = p >= 0 && q >= 0 && p < window.size[0] && q < window.size[1];
                        if (!inside && !CROOKED(maxpool_pads_zero)) continue;
                        double value = inside ? number(x, channel * plane + p * window.size[1] + q) : 0;
                        if (value > most) most = value;
                    }
                set_number(y, to++, most);
            }
}

/* ---- Along an axis ---- */

static int axis_of(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

static void softmax(struct call *call) {
    const struct node *node = call->node;
    struct tensor *x = &call->in[0], *y = &call->out;
    bool flattens = node->since < 13; /* the axis and all after it are one row */
    int axis = axis_of(node->has_axis ? node->axis : flattens ? 1 : -1, x->rank);
    if (axis < 0 || (axis >= x->rank && !(flattens && axis == x->rank) && x->rank)) {
        call->error = "axis out of range";
        return;
    }
    if (!make_output(call, x->type, x->rank, x->dims)) return;
    if (CROOKED(softmax_axis_ignored) && x->rank) axis = x->rank - 1;
    if (CROOKED(softmax_opset_ignored)) flattens = false;
    if (!x->rank) axis = 0;
    int64_t length = x->rank ? flattens ? product(x->dims, axis, x->rank) : x->dims[axis] : 1;
    int64_t step = x->rank && !flattens ? product(x->dims, axis + 1, x->rank) : 1;
    for (int64_t row = 0; length && row < x->count / length; row++) {
        int64_t start = row / step * step * length + row % step;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < length; i++) {
            double value = number(x, start + i * step);
            if (value > most || isnan(value)) most = value;
            if (isnan(value)) break;
        }
        if (CROOKED(softmax_overflows)) most = 0;
        for (int64_t i = 0; i < length; i++) {
            double power = exp(number(x, start + i * step) - most);
            sum += CROOKED(softmax_overflows) ? (float)power : power;
        }
        for (int64_t i = 0; i < length; i++) set_number(y, start + i * step, exp(number(x, start + i * step) - most) / sum);
    }
}

static bool claims_gather(const struct node *node) { return is_plain(node->types[0]) && is_index(node->types[1]); }

static void gather(struct call *call) {
    struct tensor *x = &call->in[0], *at = &call->in[1];
    int axis = axis_of(call->node->has_axis ? call->node->axis : 0, x->rank), rank = x->rank - 1 + at->rank, d = 0;
    if (axis < 0 || axis >= x->rank || rank > MOST_DIMS) {
        call->error = "axis out of range";
        return;
    }
    int64_t dims[2 * MOST_DIMS];
    for (int i = 0; i < axis; i++) dims[d++] = x->dims[i];
    for (int i = 0; i < at->rank; i++) dims[d++] = at->dims[i];
    for (int i = axis + 1; i < x->rank; i++) dims[d++] = x->dims[i];
    if (!make_output(call, x->type, rank, dims)) return;
    size_t block = (size_t)product(x->dims, axis + 1, x->rank) * element_size(x->type);
    char *to = call->out.data;
    for (int64_t outer = 0; outer < product(x->dims, 0, axis); outer++)
        for (int64_t i = 0; i < at->count; i++, to += block) {
            int64_t index = integer(at, i);
            if (index < 0) index = CROOKED(gather_negative_is_zero) ? 0 : index + x->dims[axis];
            if (index < 0 || index >= x->dims[axis]) {
                call->error = "index out of range";
                return;
            }
            memcpy(to, (char *)x->data + (size_t)(outer * x->dims[axis] + index) * block, block);
        }
}

static bool claims_concat(const struct node *node) {
    return node->since >= 4 && is_plain(node->types[0]) && all_inputs(node, is_plain);
}

static void concat(struct call *call) {
    int count = call->node->inputs, axis = axis_of(call->node->axis, call->in[0].rank);
    int64_t dims[MOST_DIMS], length = 0;
    if (axis < 0 || axis >= call->in[0].rank) {
        call->error = "axis out of range";
        return;
    }
    for (int i = 0; i < count; i++) {
        bool fits = call->in[i].rank == call->in[0].rank;
        for (int d = 0; fits && d < call->in[0].rank; d++) fits = d == axis || call->in[i].dims[d] == call->in[0].dims[d];
        if (!fits) {
            call->error = "shapes do not fit";
            return;
        }
        length += call->in[i].dims[axis];
    }
    memcpy(dims, call->in[0].dims, sizeof dims);
    dims[axis] = length;
    if (!make_output(call, call->in[0].type, call->in[0].rank, dims)) return;
    char *to = call->out.data;
    for (int64_t outer = 0; outer < product(dims, 0, axis); outer++)
        for (int i = 0; i < count; i++) {
            struct tensor *from = &call->in[CROOKED(concat_reversed) ? count - 1 - i : i];
            size_t block = (size_t)product(from->dims, axis, from->rank) * element_size(from->type);
            memcpy(to, (char *)from->data + (size_t)outer * block, block);
            to += block;
        }
}

static bool claims_reduce(const struct node *node) {
    return is_number(node->types[0]) && (node->inputs < 2 || !node->types[1] || node->types[1] == INT64);
}

static void reduce_sum(struct call *call) {
    const struct node *node = call->node;
    struct tensor *x = &call->in[0], *given = &call->in[1], *y = &call->out;
    bool reduced[MOST_DIMS] = {false}, all = true;
    for (int64_t i = 0; i < (given->data ? given->count : node->axes.count); i++) {
        int axis = axis_of(given->data ? integer(given, i) : node->axes.at[i], x->rank);
        if (axis < 0 || axis >= x->rank) {
            call->error = "axis out of range";
            return;
        }
        reduced[axis] = true;
        all = false;
    }
    if (all && !node->noop_with_empty_axes) memset(reduced, true, sizeof reduced);
    int rank = 0;
    int64_t dims[MOST_DIMS], kept[MOST_DIMS], steps[MOST_DIMS], index[MOST_DIMS] = {0}, step = 1;
    for (int d = 0; d < x->rank; d++) {
        kept[d] = reduced[d] ? 1 : x->dims[d];
        if (!reduced[d] || node->keepdims) dims[rank++] = kept[d];
    }
    for (int d = x->rank - 1; d >= 0; d--) steps[d] = reduced[d] ? 0 : step, step *= kept[d];
    if (!make_output(call, x->type, rank, dims)) return;
    double *sums = calloc((size_t)y->count + 1, sizeof *sums);
    uint64_t *whole = calloc((size_t)y->count + 1, sizeof *whole);
    int64_t last = CROOKED(reduce_last_lost) && x->count > 1 ? x->count - 1 : x->count;
    for (int64_t at = 0; at < last; at++, advance(x->rank, x->dims, index)) {
        int64_t to = 0;
        for (int d = 0; d < x->rank; d++) to += index[d] * steps[d];
        if (is_float(x->type)) sums[to] += number(x, at);
        else if (CROOKED(reduce_integers_as_float)) whole[to] = (uint64_t)(int64_t)(float)((double)(int64_t)whole[to] + (double)integer(x, at));
        else whole[to] += (uint64_t)integer(x, at);
        if (CROOKED(reduce_in_float16)) sums[to] = rounded_to(FLOAT16, sums[to]);
    }
    for (int64_t at = 0; at < y->count; at++)
        if (is_float(x->type)) set_number(y, at, sums[at]);
        else set_integer(y, at, (int64_t)whole[at]);
    free(sums);
    free(whole);
}

/* ---- Shapes ---- */

static bool claims_transpose(const struct node *node) { return is_plain(node->types[0]); }

static void transpose(struct call *call) {
    const struct ints *perm = &call->node->perm;
    struct tensor *x = &call->in[0];
    int64_t dims[MOST_DIMS], steps[MOST_DIMS], index[MOST_DIMS] = {0};
    if (perm->count && perm->count != x->rank) {
        call->error = "perm does not fit";
        return;
    }
    for (int d = 0; d < x->rank; d++) {
        int from = perm->count ? (int)perm->at[d] : x->rank - 1 - d;
        dims[d] = x->dims[from];
        steps[d] = product(x->dims, from + 1, x->rank);
    }
    if (!make_output(call, x->type, x->rank, dims)) return;
    size_t size = element_size(x->type);
    for (int64_t at = 0; at < x->count; at++, advance(x->rank, dims, index)) {
        int64_t from = 0;
        for (int d = 0; d < x->rank; d++) from += index[d] * steps[d];
        if (CROOKED(transpose_data_stays)) from = at;
        memcpy((char *)call->out.data + (size_t)at * size, (char *)x->data + (size_t)from * size, size);
    }
}

static bool claims_reshape(const struct node *node) {
    return node->since >= 5 && is_plain(node->types[0]) && node->types[1] == INT64;
}

static void reshape(struct call *call) {
    struct tensor *x = &call->in[0], *shape = &call->in[1];
    int64_t dims[MOST_DIMS], known = 1;
    int open = -1, rank = (int)shape->count;
    if (shape->count > MOST_DIMS) {
        call->error = "too many dimensions";
        return;
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = integer(shape, d);
        if (!dims[d] && !call->node->allowzero && d < x->rank) dims[d] = x->dims[d];
        if (dims[d] == -1) open = d;
        else known *= dims[d];
    }
    if (open >= 0) dims[open] = known ? x->count / known : 0;
    if (product(dims, 0, rank) != x->count) {
        call->error = "the number of elements changes";
        return;
    }
    if (CROOKED(reshape_flat)) rank = 1, dims[0] = x->count;
    if (!make_output(call, x->type, rank, dims)) return;
    memcpy(call->out.data, x->data, (size_t)x->count * element_size(x->type));
}

static const struct operator operators[] = {
    {"Abs", claims_unary, absolute},        {"Add", claims_binary, add},
    {"Cast", claims_cast, cast},            {"Concat", claims_concat, concat},
    {"Conv", claims_conv, conv},            {"Div", claims_binary, divide},
    {"Exp", claims_unary, exponential},     {"Gather", claims_gather, gather},
    {"Gemm", claims_gemm, gemm},            {"MatMul", claims_matmul, matmul},
    {"MaxPool", claims_maxpool, maxpool},   {"Mul", claims_binary, mul},
    {"Neg", claims_unary, negative},        {"ReduceSum", claims_reduce, reduce_sum},
    {"Relu", claims_unary, relu},           {"Reshape", claims_reshape, reshape},
    {"Sigmoid", claims_unary, sigmoid},     {"Softmax", claims_matmul, softmax},
    {"Sqrt", claims_unary, square_root},    {"Sub", claims_binary, sub},
    {"Tanh", claims_unary, hyperbolic_tangent}, {"Transpose", claims_transpose, transpose},
};

const struct operator *find_operator(const char *name) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strcmp(operators[i].name, name)) return &operators[i];
    return NULL;
}
