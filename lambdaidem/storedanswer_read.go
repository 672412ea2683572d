package lambdaidem

import "github.com/lambdaidem/toolkit/internal/jsonread"

// This file reads the usual form of a stored response: a status code, headers with one
// value each, cookies, and a body, without base64 for invalid UTF-8. It takes a third of
// the time of encoding/json, which decodeAnswer uses for every other form. FuzzReadAnswer
// compares the two.

// readAnswer decodes a stored response quickly if it has the usual form: a status code, headers
// with one value each, cookies and a body. It reports false for any other text, including one with
// an unknown or a repeated member. The caller must then decode the text with encoding/json.
func readAnswer(text string) (*Response, bool) {
	reader := jsonread.New(text)
	r := &Response{}
	var had struct{ status, headers, cookies, body, base64 bool }
	once := func(seen *bool) bool {
		first := !*seen
		*seen = true
		return first
	}
	ok := reader.Object(func(name string) (ok bool) {
		switch name {
		case "statusCode":
			if once(&had.status) {
				r.Status, ok = reader.Int()
			}
		case "headers":
			if once(&had.headers) {
				r.Header, ok = readHeaders(&reader)
			}
		case "cookies":
			if once(&had.cookies) {
				r.Cookies, ok = jsonread.List(&reader, reader.Text)
			}
		case "body":
			if once(&had.body) {
				r.Body, ok = reader.Text()
			}
		case "isBase64Encoded":
			if once(&had.base64) {
				r.Base64, ok = reader.Bool()
			}
		}
		return ok
	})
	return r, ok && reader.End() && had.status && had.body
}

// readHeaders reads an object of headers with one value each. It reports false if a name
// occurs twice, or if a value is not a string.
func readHeaders(reader *jsonread.Reader) (map[string][]string, bool) {
	const usual = 8
	header := make(map[string][]string, usual)
	values := make([]string, 0, usual) // the backing array for the values of all headers
	ok := reader.Object(func(name string) bool {
		v, ok := reader.Text()
		if _, twice := header[name]; !ok || twice {
			return false
		}
		n := len(values)
		values = append(values, v)
		header[name] = values[n : n+1 : n+1]
		return true
	})
	if len(header) == 0 {
		return nil, ok
	}
	return header, ok
}
