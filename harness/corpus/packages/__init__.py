"""Model packages of onnxruntime: folders in which one component has several variants.

The text of the format is in onnxruntime's repository: ``model_package/README.md`` for the layout, and
``onnxruntime/core/session/model_package/README.md`` for the part that the runtime itself reads.
"""
