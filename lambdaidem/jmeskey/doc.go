// Package jmeskey derives idempotency keys from JSON with a JMESPath expression:
//
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Key = jmeskey.Must("order.id").Request // from the JSON body of an HTTP request
//	})
//	handler := lambdaidem.Handler(guard, "charge", jmeskey.Event[Order](jmeskey.Must("[customer, number]")), charge)
//	key, err := jmeskey.Must("detail.id").JSON(message) // from any JSON text
//
// It is a package of its own so that programs without it do not link the JMESPath library.
//
// # From a result to a key
//
// The type of the expression's result decides the key:
//
//   - A string is the key itself if it is a valid key: 1 to 255 printable ASCII characters,
//     without a space at either end. Any other string is hashed.
//   - A number is the text of the number in the JSON. So 9007199254740993 and
//     9007199254740992 are different keys, and so are 1.0 and 1. The number 1 and the string
//     "1" are the same key. If a client may send both, the second request gets 422, because
//     its payload differs.
//   - A list or an object is hashed with [lambdaidem.HashKey]. A string that begins like such
//     a hash is hashed too, so that a client can't send the hash of a list or an object.
//   - null, an empty string, an empty list and an empty object give the missing key, "". A list
//     or object that the expression builds, with [a, b], {x: a} or a projection, also gives the
//     missing key if any part of it is null or empty. A list or object that the JSON itself
//     contains may have such parts: the expression [address] gives a key for an address with an
//     empty line.
//   - true and false are an error, because they can't distinguish requests.
//
// A projection silently omits null. For example, items[*].id gives the same key for the items
// [{"id": 7}] and [{"id": 7}, {}]. Write items[*].[id] instead, which gives the missing key for the
// second list. Likewise, a || b gives the same key for {"a": 7} and {"b": 7}. Requests that get the
// same key this way but have different payloads get 422. They never get each other's response.
//
// # JSON that is rejected
//
// A key must not be ambiguous. So JSON that different parsers may read differently is an error: an
// object with duplicate members, or with members whose names some parsers treat as equal; trailing
// data; invalid UTF-8. Invalid JSON is an error too, and so is JSON that exceeds the limits of
// [Options].
//
// # Expressions that are rejected
//
// Numbers are kept as text, because JMESPath's library computes with float64, which would make two
// large numbers equal. As a consequence, the library can't compare these numbers, and its functions
// on numbers fail. [New] rejects expressions that can't work for this reason, and expressions that
// can give the same key for different values:
//
//   - Comparisons, except == and != with a string, true, false or null.
//   - The functions abs, avg, ceil, floor, max, max_by, min, min_by, sort, sort_by, sum,
//     to_number and type, which support numbers as float64 only, and literal numbers.
//   - "*" on objects, and the functions keys and values, because the order of their results
//     is random.
//   - join, which can make the same string of different parts (write [a, b] instead).
//   - to_string, which makes a string of a missing value.
//   - merge, which panics on a value that is not an object and lets one member hide another.
//   - Literals. With id || 'none', all requests without an id would share the key none. A
//     literal is allowed if something is compared with it. A literal string is also allowed as
//     a part of [a, b] or {x: a}, if another part is not a literal.
//   - [a, b] and {x: a} if the expression then selects something from them, because a missing
//     part would go unnoticed.
//   - {x: a} with two members of the same name.
//   - Slices with step 0, or with numbers beyond a million.
package jmeskey
