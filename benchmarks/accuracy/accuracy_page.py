"""placeholder"""
def page(r, v):
    import json
    return json.dumps(r)
