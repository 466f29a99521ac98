"""stub"""
def page(r): return ""
