package window

import "strings"

// titleOf returns how the page names the record of an exchange: by the key and the route, because
// the same key on another route has another record.
func (w *Window) titleOf(x *exchange) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return titleOf(x.request, w.controls.routes)
}

func titleOf(r request, routes []route) string {
	path, _, _ := strings.Cut(pathOf(r.URL), "?")
	for _, to := range routes {
		if to.Method == r.Method && strings.HasPrefix(r.URL, to.URL) && matches(path, to.Path) {
			path = to.Path
			break
		}
	}
	return "key " + r.Key + " of " + r.Method + " " + path
}

// matches reports whether a path is one of a route's, whose variables are in braces.
func matches(path, route string) bool {
	is, want := strings.Split(path, "/"), strings.Split(route, "/")
	if len(is) != len(want) {
		return false
	}
	for i := range is {
		if is[i] != want[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}
