// Package jmeskey makes idempotency keys by a JMESPath expression:
//
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
//		o.Key = jmeskey.Must("order.id").Request // of the JSON body of an HTTP request
//	})
//	handler := lambdaidem.Handler(guard, "charge", jmeskey.Event[Order](jmeskey.Must("[customer, number]")), charge)
//	key, err := jmeskey.Must("detail.id").JSON(message) // of any JSON text
//
// It is apart from the guard, so that who does not use it does not link it.
//
// # What becomes of a result
//
//   - A text is the key itself, if it is one by itself: 1 to 255 printable ASCII
//     characters without spaces at the ends. Any other text is hashed.
//   - A number is its own text: 9007199254740993 is not 9007199254740992, and
//     1.0 is not 1. The number 1 and the text "1" are one key; where both may come,
//     the payload tells them apart.
//   - A list or an object is a hash: [lambdaidem.HashKey] of it. So is a text that
//     begins like such a hash, so that no text can pass for one.
//   - Nothing is a missing key, "": null, an empty text, list or object, and
//     whatever the expression put together, [a, b], {x: a} or the list of a
//     projection, of which any part is nothing. What stands so in the JSON itself is
//     there: of [address] an address with an empty line is not missing.
//   - True and false tell no two requests apart, and are an error.
//
// A projection leaves out what is nothing, and says so to nobody: items[*].id is
// the same key for two items, one of them without an id, as for one. Write
// items[*].[id], which is missing then. Likewise a || b is one key for whichever of
// the two holds it. The payload still tells such requests apart: they get 422,
// never each other's answer.
//
// # What JSON is read
//
// A key must not be ambiguous, so JSON that its readers disagree about has
// none, and is an error: duplicate members, or members whose names some readers take
// for one; trailing data; invalid UTF-8. So is what is no JSON, or larger or deeper
// than [Options] allow.
//
// # What expressions are refused
//
// Numbers are read as their texts, since as float64, which JMESPath's library
// computes with, two large ones are one. It then finds no number equal to or less
// than another, and its functions on numbers fail. New refuses what can't work so,
// and what makes one key of different things:
//   - comparisons but == and != with a text, true, false or null;
//   - abs, avg, ceil, floor, max, max_by, min, min_by, sort, sort_by, sum,
//     to_number and type, which know no number but float64; and numbers in literals;
//   - "*" on objects, keys and values, whose order is another each time;
//   - join, which makes one text of different parts (write [a, b]), to_string,
//     which makes a text of what is missing, and merge;
//   - literals but texts as a part of [a, b] or {x: a}, beside one that is none, and
//     what something is compared to: one that stands in for what is missing would be
//     a key that many share;
//   - [a, b] and {x: a} of which something is taken out again, since a part that is
//     missing would not be missed; two members of one name;
//   - slices whose step is 0 or whose numbers are beyond a million.
package jmeskey
