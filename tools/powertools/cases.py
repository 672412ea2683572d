"""Writes the cases of the golden ids.

A case has data, a JSON text that the libraries might write differently. If it also has an event and
a JMESPath expression, the libraries select that data from the event themselves.
"""

import json
import random
import sys

scalars = r"""
"order-1" "0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11" "" "42" null true false
0 -0 1 -1 42 100000000000000000000000000000000 123456789012345678 9007199254740993 12345678901234567890
1.0 -0.0 0.0 0.1 -0.1 10.50 99.99 256.42 12.0 1e2 1E2 1e+2 1.5e3 100.0 0.001 0.0001 0.00001 0.00012 1e-5 1e-6 1e-7 2.5e-8 1.5E-10
1e15 1e16 1.5e16 123456789.123456789 9999999.9 10000000.5 1e20 1e21 1e22 1.5e300 1e400 -1e400 5e-324 1e-400
"é" "日本語" "😀" "\ud83d\ude00" "\u0000\u0001\u001f\b\t\n\f\r\"\\\/" "\u007f\u0080\u009f" "\u2028\u2029" "<>&'" "\ufeff" "\ufffd" "e\u0301"
""".split()

containers = r"""
[]
{}
[null]
[null, null]
[[]]
[""]
[0]
[false]
{"a": null}
{"a": null, "b": 1}
{"a": ""}
{"a": {}}
[1, "a", null, true, {"b": []}, 1.0, 1e2]
{"user_id": "u1", "product_id": 7}
{"b": 1, "a": 2}
{"B": 1, "a": 2, "C": 3}
{"a": 1, "A": 2}
{"A": 1, "a": 2}
{"b": 1, "B": 2, "a": 3, "A": 4}
{"ab": 1, "aB": 2, "Ab": 3, "AB": 4, "a": 5}
{"_": 1, "a": 2, "A": 3, "Z": 4, "^": 5}
{"10": 1, "9": 2, "b": 3, "a": 4, "01": 5, "-1": 6, "1.5": 7, "": 8}
{"4294967294": 1, "4294967295": 2, "4294967296": 3, "1": 4, "0": 5}
{"!": 1, "5": 2}
{"4294967295": 1, "!": 2, "4294967294": 3}
{"é": 1, "z": 2, "a": 3}
{"\ud83d\ude00": 1, "\ue000": 2, "\uffff": 3}
{"ß": 1, "ss": 2, "日": 3, "ı": 4}
{"__proto__": {"x": 1}, "a": 2}
{"__proto__": 1}
{"__proto__": null, "b": 1, "A": 2}
{"constructor": 1, "toString": 2, "toJSON": 3, "hasOwnProperty": 4, "length": 5, "dict": 6, "raw_event": 7}
{"nested": {"b": [{"d": 1, "c": {"y": 1, "X": 2}}], "A": []}, "Array": [{"b": 1, "a": 2}, [3, 1, 2]]}
 { "spaced" : [ 1 , 2 ] , "out" : { } } 
{"\u0061": "\u0061", "quote\"": "back\\slash", "tab\t": "\t"}
{"amount": 10.50, "currency": "EUR", "items": [{"sku": "BK-1", "qty": 2, "price": 49.95}, {"sku": "BK-2", "qty": 1, "price": 30.0}]}
""".strip("\n").split("\n")

r = random.Random(1)
numbers = [repr(r.choice([1, -1]) * r.random() * 10 ** r.randint(-12, 24)) for _ in range(150)]
numbers += [str(r.randint(0, 10 ** r.randint(1, 25))) for _ in range(50)]
numbers += ["%.2f" % (r.randint(0, 10**9) / 100) for _ in range(50)]
numbers += [f"{r.randint(1, 9)}.{r.randint(0, 10**20)}e{r.randint(-330, 330)}" for _ in range(50)]

# More members than a short sort handles, with names that differ by case only.
names = [a + b for a in "aAbBcCdD_" for b in "xXyYzZ019"]
r.shuffle(names)
large = json.dumps({name: i for i, name in enumerate(names)})

event = {
    "headers": {"X-Idempotency-Key": "abc", "x-user": "u-1"},
    "requestContext": {"authorizer": {"sub": "user 7"}},
    "body": '{"order_id": 42, "amount": 10.50, "user": {"name": "Zoë", "Id": 9007199254740993}, "tags": ["b", "a"]}',
}
selections = {
    "body": json.dumps(event["body"]),
    "powertools_json(body)": event["body"],
    "powertools_json(body).order_id": "42",
    "powertools_json(body).amount": "10.50",
    "powertools_json(body).[user.name, order_id]": '["Zoë", 42]',
    "powertools_json(body).[missing, order_id]": "[null, 42]",
    "powertools_json(body).{who: user.name, What: order_id, when: missing}": '{"who": "Zoë", "What": 42, "when": null}',
    "powertools_json(body).user": '{"name": "Zoë", "Id": 9007199254740993}',
    "powertools_json(body).tags": '["b", "a"]',
    "powertools_json(body).missing": "null",
    'headers."X-Idempotency-Key"': '"abc"',
    "[requestContext.authorizer.sub, powertools_json(body).amount]": '["user 7", 10.50]',
}

cases = [{"data": text} for text in scalars + containers + ["[" + ", ".join(numbers) + "]", large]]
cases += [{"data": data, "event": event, "expression": expression} for expression, data in selections.items()]
json.dump(cases, sys.stdout, indent=1)
print()
