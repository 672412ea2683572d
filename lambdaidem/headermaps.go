package lambdaidem

import "strings"

// splitHeaders splits headers into those with exactly one value and the others, for the two
// header maps of API Gateway's proxy response.
func splitHeaders(all map[string][]string) (single map[string]string, multi map[string][]string) {
	for name, values := range all {
		if len(values) == 1 {
			if single == nil {
				single = make(map[string]string, len(all))
			}
			single[name] = values[0]
			continue
		}
		if multi == nil {
			multi = make(map[string][]string)
		}
		multi[name] = values
	}
	return single, multi
}

// joinHeaders merges headers with one value each and headers with lists of values into one
// map. No name may be in both: the value in single would be lost.
func joinHeaders(single map[string]string, multi map[string][]string) map[string][]string {
	if len(single)+len(multi) == 0 {
		return nil
	}
	all := make(map[string][]string, len(single)+len(multi))
	values := make([]string, 0, len(single)) // the backing array for all values of single
	for name, v := range single {
		n := len(values)
		values = append(values, v)
		all[name] = values[n : n+1 : n+1]
	}
	for name, values := range multi {
		all[name] = values
	}
	return all
}

// withCookies returns the headers of a response, with its cookies added as Set-Cookie
// headers. It is for events whose responses have no separate field for cookies.
func withCookies(r *Response) map[string][]string {
	if len(r.Cookies) == 0 {
		return r.Header
	}
	all := make(map[string][]string, len(r.Header)+1)
	name := ""
	for have, vs := range r.Header {
		switch {
		case !strings.EqualFold(have, "Set-Cookie"):
			all[have] = vs
		case name == "" || have < name:
			name = have
		}
	}
	defaultTo(&name, "Set-Cookie")
	all[name] = append((&headers{multi: r.Header}).appendTo(nil, "Set-Cookie"), r.Cookies...)
	return all
}

// joined returns headers with one value for each name. It joins several values with commas
// (RFC 9110, 5.3). Several Set-Cookie values can't be joined, so joined returns all of them as
// cookies. A single Set-Cookie value stays in headers.
func joined(header map[string][]string) (headers map[string]string, cookies []string) {
	headers = make(map[string]string, len(header))
	for name, values := range header {
		if strings.EqualFold(name, "Set-Cookie") && len(values) > 1 {
			cookies = append(cookies, values...)
			continue
		}
		headers[name] = strings.Join(values, ", ")
	}
	return headers, cookies
}

// hasName reports whether headers has the name, ignoring case.
func hasName(headers map[string][]string, name string) bool {
	for have := range headers {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

func with[V any](m map[string]V, name string, v V) map[string]V {
	if m == nil {
		m = make(map[string]V)
	}
	m[name] = v
	return m
}
