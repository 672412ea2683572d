package lambdaidem

import "github.com/lambdaidem/toolkit/internal/jsonread"

// A stored answer as almost all of them are (statusCode, headers of one value each, a
// body, and texts as they are) is read here, in a third of the time of encoding/json.
// Whatever else there is, that reads: see decodeAnswer. FuzzReadAnswer holds the two
// to each other.

// readAnswer reports false for an answer that it does not know to the last character.
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

// readHeaders reads headers of one value each.
func readHeaders(reader *jsonread.Reader) (map[string][]string, bool) {
	const usual = 8
	header := make(map[string][]string, usual)
	values := make([]string, 0, usual) // of all of them
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
