// Values of the axis `scenario` that the JavaScript agent plays; it declines the others.
//
// `settings` gives further session options, `facts` what the result says about the scenario; `refusal` is a text by
// which onnxruntime refuses it cleanly.

import { CPU } from './target.mjs';
import { Unsupported } from './errors.mjs';

export const scenarios = {
  from_bytes: {
    settings: () => ({}),
    facts: ({ model }) => ({ model_bytes: model.bytes.length }),
    fromBytes: true,
  },
  cpu_fallback_disabled: {
    settings: ({ target }) => {
      if (target.chain.includes(CPU)) throw new Unsupported(`the target names ${CPU} itself`);
      return { extra: { session: { disable_cpu_ep_fallback: '1' } } };
    },
    facts: () => ({ refused: false }),
    refusal: /fallback to (?:the )?(?:default )?CPU EP/,
  },
  io_binding: {
    settings: ({ target }) => {
      const location = { webgpu: 'gpu-buffer', webnn: 'ml-tensor' }[target.apiName];
      if (!location) throw new Unsupported(`the JavaScript API keeps no tensors on the device of ${target.chain[0]}`);
      return { preferredOutputLocation: location };
    },
    facts: ({ locations }) => ({ outputs_on: locations }),
  },
};
