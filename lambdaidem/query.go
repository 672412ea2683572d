package lambdaidem

import (
	"net/url"
	"slices"
	"strings"
)

// queryOf returns the parameters of an event as a query string, sorted by name. Values of
// one name keep their order. If escape is true, queryOf escapes names and values. The caller
// sets escape if the event has them unescaped, because the gateway has decoded the query.
func queryOf(multi map[string][]string, single map[string]string, escape bool) string {
	if len(multi) == 0 && len(single) > 0 {
		multi = make(map[string][]string, len(single))
		for name, v := range single {
			multi[name] = []string{v}
		}
	}
	names := make([]string, 0, len(multi))
	for name := range multi {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, v := range multi[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			if escape {
				b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(v))
				continue
			}
			b.WriteString(name + "=" + v)
		}
	}
	return b.String()
}

// sortedQuery sorts the parameters of a raw query by their unescaped names. It keeps the
// order of the values of one name, because that order can matter, and it keeps the
// escaping.
func sortedQuery(raw string) string {
	if !strings.Contains(raw, "&") {
		return raw
	}
	pairs := strings.Split(raw, "&")
	slices.SortStableFunc(pairs, func(a, b string) int { return strings.Compare(parameterName(a), parameterName(b)) })
	return strings.Join(pairs, "&")
}

// parameterName returns the unescaped name of one parameter of a raw query. If the name
// has an invalid escape, parameterName returns it as it is.
func parameterName(parameter string) string {
	name, _, _ := strings.Cut(parameter, "=")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		return unescaped
	}
	return name
}
