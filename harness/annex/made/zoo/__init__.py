"""The zoo: real architectures, built by code with seeded weights, in the form of usual exports.

``roster`` names the models without importing onnx; ``write`` builds one when it is first asked for.
"""
