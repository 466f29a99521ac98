"""The zoo: real architectures, built by code with seeded weights, as applications would export them.

``roster`` names the models without importing onnx; ``write`` builds one when it is first asked for.
"""
