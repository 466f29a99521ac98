#!/usr/bin/env perl
# An agent in Perl, with nothing but its core modules. Its runtime is a stand-in for the CPU execution provider
# that has a handful of operators: enough to show each part of the agent protocol. Replace what is below
# "The runtime" by calls of yours.
use strict;
use warnings;
use Compress::Zlib qw(crc32);
use Digest::SHA qw(sha256_hex);
use Encode qw(encode_utf8);
use File::Basename qw(dirname);
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;
use Time::HiRes qw(time);

my $json = JSON::PP->new->utf8->canonical;
my ($in, $out, $mode, $buffer, @waiting) = (\*STDIN, undef, "binary", "");
my $provider = "CPUExecutionProvider";
my @keys = qw(model data_sets graph_optimization execution_mode);    # of a job; others are unsupported
my %declines = map { $_ => "this agent is an example" } qw(scenario other repeat latency entries fixed intra_op_threads
    make evaluate form generate tensor_folders native_stack value:sequence value:map value:optional
    dtype:int4 dtype:uint4 dtype:int2 dtype:uint2);

# ---- The stream: a hello, a greeting, then frames.

sub more { sysread($in, $buffer, 1 << 16, length $buffer) or exit 0 }    # its end means: the harness has gone
sub line { more() until $buffer =~ s/\A([^\n]*)\n//; my $line = $1; $line =~ s/\r\z//; $line }
sub take { my $size = shift; more() while length($buffer) < $size; substr($buffer, 0, $size, "") }
sub put { my ($data, $at) = (shift, 0); $at += syswrite($out, $data, 1 << 20, $at) // exit 0 while $at < length $data }

sub receive {
    line() =~ /\A#([bl]) (\d{1,9}) (\d{1,10}) ([0-9a-f]{8})\z/ or die "no frame\n";
    my ($how, $size, $rest, $crc, $data) = ($1, $2, $3, $4, "");
    die "a frame beyond the limits\n" if $size > 32 << 20 or $rest > 5 << 28;
    if ($how eq "b") { $data = take($size + $rest); take(1) eq "\n" or die "a frame without its end\n" }
    else {
        $data .= line() while length($data) < 4 * int(($size + $rest + 2) / 3);
        $data = decode_base64($data);
    }
    length($data) == $size + $rest and sprintf("%08x", crc32($data)) eq $crc or die "a frame was changed\n";
    return with_bytes($json->decode(substr $data, 0, $size), \substr($data, $size));
}

# A binary value becomes a reference to its bytes, and the other way round.
sub with_bytes {
    my ($value, $rest) = @_;
    return [map { with_bytes($_, $rest) } @$value] if ref $value eq "ARRAY";
    return $value if ref $value ne "HASH";
    my ($key, @others) = keys %$value;
    my $is_bytes = defined $key && $key eq "\0bytes" && !@others;
    return \(my $bytes = substr($$rest, $value->{$key}[0], $value->{$key}[1])) if $is_bytes;
    return {map { $_ => with_bytes($value->{$_}, $rest) } keys %$value};
}

sub without_bytes {
    my ($value, $rest) = @_;
    return [map { without_bytes($_, $rest) } @$value] if ref $value eq "ARRAY";
    return {map { $_ => without_bytes($value->{$_}, $rest) } sort keys %$value} if ref $value eq "HASH";    # as written
    return $value if ref $value ne "SCALAR";
    my $at = length $$rest;
    $$rest .= $$value;
    return {"\0bytes" => [$at, length $$value]};
}

sub message {
    my $rest = "";
    my $text = $json->encode(without_bytes([@_], \$rest));
    my ($sizes, $data) = (length($text) . " " . length($rest), $text . $rest);
    my $body = $mode eq "binary" ? "$data\n" : encode_base64($data);
    put(sprintf("#%s %s %08x\n%s", substr($mode, 0, 1), $sizes, crc32($data), $body));
}

# ---- The conversation.

sub converse {
    message("imported");
    while (my $message = shift(@waiting) // receive()) {
        my $name = $message->[0];
        if ($name eq "stop") { message("leaving", "exit"); exit 0 }
        elsif ($name eq "config") { configure($message->[1]) }
        elsif ($name eq "job") { serve(0 + $message->[1], $message->[2]) }
    }
}

sub configure {
    my $config = shift;
    my ($cause, $reason) = defined $config->{plugin} ? ("library_missing", "it loads no plugins")
        : "@{$config->{providers}}" ne $provider ? ("not_in_build", "it has $provider alone") : ();
    if ($cause) { message("unavailable", $cause, $reason, "", {}); exit 0 }
    for (sort keys %{$config->{options}}) { message("rejected", $_, "there are no options", "", {}); exit 0 }
    message("ready", {onnxruntime => "0.1.0", platform => $^O, not_watched => []});
}

sub serve {
    my ($id, $job) = @_;
    my ($began, $phase, %known) = (time, "create", map { $_ => 1 } @keys);
    my $result = eval {
        for (sort keys %$job) { die {status => "unsupported", phase => $phase, message => "it does not know $_"} unless $known{$_} }
        my ($model, $files, $folder) = model_of($id, $job->{model});
        my $graph = graph($model, $files, $folder);
        my $created = time;
        message("phase", $id, $phase = "run");
        my @outputs = map { run($graph, {map { $_->[0] => $_->[1] } @$_}) } @{$job->{data_sets}};
        my %ops;
        $ops{$_->{op}}++ for @{$graph->{nodes}};
        {status => "ok", names => $graph->{outputs}, outputs => \@outputs,
            providers => [$provider], providers_after => [$provider],
            timings_ms => {create => 1000 * ($created - $began), first_run => 1000 * (time - $created)},
            placement => {source => "assignment", partitions => 1, ep_nodes => 0 + @{$graph->{nodes}}, ep_ops => \%ops,
                cpu_nodes => 0, cpu_ops => {}}};
    } // (ref $@ ? $@ : {status => "error", phase => $phase, kind => "Fail", message => "$@"});
    message("result", $id, $result);
    message("done", $id, {took_ms => 1000 * (time - $began), teardown_ms => 0, processor_ms => 0, rss_mib => undef});
}

# A model is a path, or a list of files that come in pieces. These stay in memory, so that no name can lead anywhere.
sub model_of {
    my ($id, $model) = @_;
    return (slurp(encode_utf8($model)), {}, dirname(encode_utf8($model))) unless ref $model;
    my %files;
    for (@{$model->{files}}) {
        my ($name, $size, $digest) = @$_;
        my ($data, $bad) = ("", {status => "unfeedable", message => "$name did not arrive"});
        die $bad if $name =~ m{\A/|(?:\A|/)\.\.(?:/|\z)};
        while (length($data) < $size) {
            message("need", $id, $name, length $data);
            my $piece = receive();
            until ($piece->[0] eq "model") { push @waiting, $piece; $piece = receive() }
            die $bad unless ref $piece->[4] and length ${$piece->[4]};
            $data .= ${$piece->[4]};
        }
        die $bad if sha256_hex($data) ne $digest;
        $files{$name} = $data;
    }
    return ($files{$model->{files}[0][0]}, \%files, "");
}

sub slurp { my $path = shift; open my $file, "<:raw", $path or die "$path: $!\n"; local $/; <$file> }

# ---- The runtime: a reader of ONNX's protobuf, and operators.

my @types = qw(none float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 complex64
    complex128 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 float8e8m0);
my %operators = (
    Identity => sub { $_[0] },
    Constant => sub { $_[-1]{value} },
    Neg => sub { floats(sub { -$_[0] }, @_) },
    Abs => sub { floats(sub { abs $_[0] }, @_) },
    Sqrt => sub { floats(sub { $_[0] < 0 ? "nan" : sqrt $_[0] }, @_) },
    Mul => sub { floats(sub { $_[0] * $_[1] }, @_) },
    Add => sub { floats(sub { $_[0] + $_[1] }, @_) },
    Sub => sub { floats(sub { $_[0] - $_[1] }, @_) },
    Loop => \&repeated,
);

sub varint {
    my ($data, $value, $shift) = (@_, 0, 0);
    while (length $$data) {
        my $byte = ord substr($$data, 0, 1, "");
        $value |= ($byte & 127) << $shift;
        return $value if $byte < 128;
        $shift += 7;
    }
    die "no ONNX model\n";
}

sub fields {    # of one protobuf message: number -> values
    my ($data, %found) = (shift);
    while (length $data) {
        my $key = varint(\$data);
        my $kind = $key & 7;
        my $size = $kind == 2 ? varint(\$data) : $kind == 1 ? 8 : $kind == 5 ? 4 : $kind == 0 ? 0 : die "no ONNX model\n";
        die "no ONNX model\n" if $size > length $data;
        push @{$found{$key >> 3}}, $kind ? substr($data, 0, $size, "") : varint(\$data);
    }
    return \%found;
}

sub integers { my ($data, @all) = (join "", @_); push @all, varint(\$data) while length $data; @all }
sub text { my $value = shift->[0] // ""; utf8::decode($value); $value }

sub tensor {
    my ($found, $files, $folder) = (fields($_[0]), @_[1, 2]);
    my $data = $found->{9}[0] // join "", @{$found->{4} // []}, map({ pack "q<", $_ } integers(@{$found->{7} // []})),
        map({ chr } integers(@{$found->{5} // []}));    # float_data, int64_data, and int32_data for truth values
    if (my %where = map { my $pair = fields($_); text($pair->{1}) => text($pair->{2}) } @{$found->{13} // []}) {
        my $all = $files->{$where{location}} // slurp("$folder/" . encode_utf8($where{location}));
        $data = substr $all, $where{offset} // 0, $where{length} // length $all;
    }
    return {dtype => $types[$found->{2}[0]], shape => [map { 0 + $_ } @{$found->{1} // []}], data => \$data};
}

sub graph {
    my ($model, $files, $folder) = @_;
    my $found = fields($model);
    return graph_of(fields($found->{7}[0] // die "no ONNX model\n"), $files, $folder);
}

sub graph_of {
    my ($found, $files, $folder) = @_;
    my (%constants, %inputs, @order, @nodes);
    for (@{$found->{5} // []}) { $constants{text(fields($_)->{8})} = tensor($_, $files, $folder) }
    for (map { fields($_) } @{$found->{11} // []}) {
        my $type = fields(fields($_->{2}[0])->{1}[0] // "");
        push @order, text($_->{1});
        $inputs{$order[-1]} = {dtype => $types[$type->{1}[0] // 0], rank => $type->{2} && 0 + @{fields($type->{2}[0])->{1} // []}};
    }
    for (map { fields($_) } @{$found->{1} // []}) {
        my $op = text($_->{4});
        die {status => "unsupported", phase => "create", message => "the example has no operator $op"} unless $operators{$op};
        my %given = map { text($_->{1}) => $_->{5} ? tensor($_->{5}[0], $files, $folder)
            : $_->{6} ? graph_of(fields($_->{6}[0]), $files, $folder) : undef } map { fields($_) } @{$_->{5} // []};
        push @nodes, {op => $op, inputs => [map { text([$_]) } @{$_->{1} // []}], outputs => [map { text([$_]) } @{$_->{2} // []}], given => \%given};
    }
    my @outputs = map { text(fields($_)->{1}) } @{$found->{12} // []};
    return {constants => \%constants, inputs => \%inputs, order => \@order, nodes => \@nodes, outputs => \@outputs};
}

sub run {
    my ($graph, $given) = @_;
    my ($inputs, %values) = ($graph->{inputs}, %{$graph->{constants}}, %$given);
    for (sort keys %$given) {
        my $declared = $inputs->{$_} // die "there is no input $_\n";
        die "input $_ has another type\n" if $declared->{dtype} ne ($given->{$_}{dtype} // "");
        die "input $_ has another rank\n" if defined $declared->{rank} and $declared->{rank} != @{$given->{$_}{shape}};
    }
    for (@{$graph->{order}}) { die "input $_ is missing\n" unless $values{$_} }
    return evaluate($graph, \%values);
}

sub evaluate {
    my ($graph, $values) = @_;
    for my $node (@{$graph->{nodes}}) {
        my @results = $operators{$node->{op}}->(map({ $values->{$_} } @{$node->{inputs}}), $node->{given});
        $values->{$node->{outputs}[$_]} = $results[$_] for 0 .. $#{$node->{outputs}};
    }
    return [map { $values->{$_} } @{$graph->{outputs}}];
}

sub floats {    # an operator on each element; a tensor of one element goes with any other
    my ($function, @tensors) = (shift, grep { exists $_->{dtype} } @_);
    my @columns = map { $_->{dtype} eq "float32" ? [unpack "f<*", ${$_->{data}}] : die "it computes with float32 alone\n" } @tensors;
    die "the shapes differ\n" if @columns == 2 and "@{$tensors[0]{shape}}" ne "@{$tensors[1]{shape}}";
    my $data = pack "f<*", map { my $at = $_; $function->(map { $_->[$at] } @columns) } 0 .. $#{$columns[0]};
    return {dtype => "float32", shape => $tensors[0]{shape}, data => \$data};
}

sub repeated {    # Loop: a long run looks at its input, because the end of that ends it
    my ($count, $go, @carried) = @_;
    my ($body, $limit) = (pop(@carried)->{body}, unpack "q<", ${$count->{data}});
    for my $step (0 .. $limit - 1) {
        my $ready = "";
        vec($ready, fileno($in), 1) = 1;
        more() if $step % 64 == 0 and select($ready, undef, undef, 0) and length($buffer) < 1 << 20;
        my $number = pack "q<", $step;
        my @given = ({dtype => "int64", shape => [], data => \$number}, $go, @carried);
        ($go, @carried) = @{evaluate($body, {%{$body->{constants}}, map { $body->{order}[$_] => $given[$_] } 0 .. $#given})};
        last unless ord ${$go->{data}};
    }
    return @carried;
}

# ---- The beginning.

my $hello = $ENV{EP_HARNESS_HELLO} // line();
$hello =~ /\Aep-harness (\{.*\})\z/ or die "no hello\n";
$hello = $json->decode($1);
open $out, ">&", \*STDOUT or die;      # from here on the stream is the agent's own,
open STDOUT, ">&", \*STDERR or die;    # and what a runtime prints goes elsewhere
if ($hello->{connect} =~ m{\Atcp://(.*)\z}) { $in = $out = IO::Socket::INET->new(PeerAddr => $1) or die "no connection: $@\n" }
$mode = $hello->{modes}[0];
my %greeting = (protocol => 1, token => $hello->{token}, mode => $mode, agent => "perl", declines => \%declines);
put("ep-agent " . JSON::PP->new->ascii->encode(\%greeting) . "\n");
exit 1 unless grep { $_ == 1 } @{$hello->{protocols}};
eval { converse(); 1 } or do { my $text = $@; message("failed", "$text"); exit 1 };
