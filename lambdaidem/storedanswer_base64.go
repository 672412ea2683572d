package lambdaidem

import "unicode/utf8"

// isText reports whether every string of the response, except the names of headers, is
// valid UTF-8. Such strings are stored as JSON strings without base64.
func (r *Response) isText() bool {
	if !utf8.ValidString(r.Body) || !utf8.ValidString(r.reason) {
		return false
	}
	for _, several := range []map[string][]string{r.Header, r.trailer} {
		for _, values := range several {
			if !allUTF8(values) {
				return false
			}
		}
	}
	for _, v := range r.fromHeaders {
		if !utf8.ValidString(v) {
			return false
		}
	}
	return allUTF8(r.Cookies)
}

func allUTF8(texts []string) bool {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

// mapTexts replaces every string except header names with the result of f. If f returns errors,
// mapTexts sets *failed to the last one.
func (s *storedAnswer) mapTexts(f func(string) (string, error), failed *error) {
	one := func(t string) string {
		out, err := f(t)
		if err != nil {
			*failed = err
		}
		return out
	}
	all := func(texts []string) []string {
		out := make([]string, len(texts))
		for i, t := range texts {
			out[i] = one(t)
		}
		return out
	}
	ones := func(from map[string]string) map[string]string {
		out := make(map[string]string, len(from))
		for name, v := range from {
			out[name] = one(v)
		}
		return out
	}
	several := func(from map[string][]string) map[string][]string {
		out := make(map[string][]string, len(from))
		for name, values := range from {
			out[name] = all(values)
		}
		return out
	}
	s.Headers, s.Beside, s.MultiValueHeaders, s.Trailers = ones(s.Headers), ones(s.Beside), several(s.MultiValueHeaders), several(s.Trailers)
	s.Cookies, s.Body, s.StatusDescription = all(s.Cookies), one(s.Body), one(s.StatusDescription)
}
