"""Which family makes the forms of which operator: one row for each family."""

from collections.abc import Callable

from harness.corpus.forms import elementwise
from harness.corpus.forms.setting import Form, Setting

Family = Callable[[Setting], Form]

_ROWS: tuple[tuple[Family, str], ...] = (
    (
        elementwise.unary,
        """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu
        HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink
        Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu com.microsoft.Gelu
        com.microsoft.QuickGelu""",
    ),
    (elementwise.cast, "Cast CastLike"),
    (
        elementwise.binary,
        """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual
        Mod Mul Or PRelu Pow Sub Xor com.microsoft.BiasGelu""",
    ),
    (elementwise.variadic, "Max Mean Min Sum"),
    (elementwise.where, "Where"),
    (elementwise.clip, "Clip"),
)

FAMILIES: dict[str, Family] = {name: family for family, names in _ROWS for name in names.split()}
"""Operator, with its domain unless that is ONNX's own -> its family."""
