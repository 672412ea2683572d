package idemtest

import "strings"

// joined returns the headers and cookies in payload format version 2.0: the names of headers are in
// lower case, and the values of one name are joined with commas. The Cookie header is not in
// headers, but split into cookies.
func (r Request) joined() (headers map[string]string, cookies []string) {
	for _, line := range r.Header.Values("Cookie") {
		for c := range strings.SplitSeq(line, ";") {
			cookies = append(cookies, strings.TrimSpace(c))
		}
	}
	r.Header.Del("Cookie")
	r.Header.Set("Host", host)
	headers = make(map[string]string, len(r.Header))
	for name, value := range joined(r.Header) {
		headers[strings.ToLower(name)] = value
	}
	return headers, cookies
}

// joined returns the values of each name, joined with commas.
func joined(all map[string][]string) map[string]string {
	out := make(map[string]string, len(all))
	for name, values := range all {
		out[name] = strings.Join(values, ",")
	}
	return out
}

// lastValues returns the last value of each name. A gateway that passes on only one value of each
// name passes on the last value.
func lastValues(all map[string][]string) map[string]string {
	out := make(map[string]string, len(all))
	for name, values := range all {
		out[name] = values[len(values)-1]
	}
	return out
}
