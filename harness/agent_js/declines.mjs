// What the JavaScript agents do not do, as their greetings say; names as in docs/reference/agent-protocol.md.

// Scenarios that neither of them plays.
const SCENARIOS = {
  concurrent: 'the JavaScript API runs one session at a time, on one thread',
  compile: "onnxruntime's JavaScript API has no ModelCompiler",
  ep_context: 'the JavaScript agent starts no second process to load what was compiled',
  interleaved: 'written for Python; sessions of a JavaScript agent are made one after the other',
  async_runs: 'the JavaScript API runs one session at a time, on one thread',
  lifecycle: 'the JavaScript API registers no libraries',
  separate_outputs: 'written for Python',
  dynamic_options: 'the JavaScript API sets no option of a provider in an open session',
  graph_capture: 'written for Python',
  profiling: 'written for Python',
  terminate: 'the JavaScript API has no way to end a run that goes on',
  buffers: 'the JavaScript agent binds no buffers of its own',
  initializers: "onnxruntime's JavaScript API takes no weights from memory but whole files",
  adapters: "onnxruntime's JavaScript API has no adapters",
  package: "onnxruntime's JavaScript API has no model packages",
  generate: 'the ways to generate text are written for Python',
};

const DTYPES = [
  'bfloat16', 'float8e4m3fn', 'float8e4m3fnuz', 'float8e5m2', 'float8e5m2fnuz', 'float8e8m0', 'float4e2m1',
  'int2', 'uint2', 'complex64', 'complex128',
];

const NO_SUCH_VALUE = "onnxruntime's JavaScript API has no such values";

/** Return what an agent declines; `further` is what only one of them does. */
export function declines(further = {}) {
  return {
    ...Object.fromEntries(Object.entries(SCENARIOS).map(([name, why]) => [`scenario:${name}`, why])),
    ...Object.fromEntries(DTYPES.map((name) => [`dtype:${name}`, NO_SUCH_VALUE])),
    'value:sequence': NO_SUCH_VALUE,
    'value:map': NO_SUCH_VALUE,
    'value:optional': NO_SUCH_VALUE,
    latency: 'the JavaScript agent measures no latency',
    make: 'the conversion of models needs Python',
    evaluate: 'onnx.reference needs Python',
    form: "onnxruntime's JavaScript API does not give the optimized model",
    tensor_folders: 'the JavaScript agent takes tensors inside messages',
    native_stack: 'the JavaScript agent reads no native stacks',
    ...further,
  };
}
