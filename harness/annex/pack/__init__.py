"""Model packages of onnxruntime: write what a run has proved, and check one from elsewhere."""
