package emulator

import (
	"maps"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// The table of "Routes for HTTP APIs" and the cases between its lines.
func TestV1_MostSpecificRouteWins(t *testing.T) {
	r := &router{}
	for _, key := range []string{
		"$default", "ANY /{proxy+}", "GET /{proxy+}", "GET /pets/{proxy+}", "ANY /pets/dog/{proxy+}",
		"GET /pets/{kind}/{id}", "GET /pets/dog/{id}", "ANY /pets/dog/{id}", "GET /pets/dog/1", "POST /pets/{kind}/1",
	} {
		route := template.Route{}
		if key != "$default" {
			route.Method, route.Path, _ = strings.Cut(key, " ")
		}
		if err := r.add(target{route: route}); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		method, path, key string
		parameters        map[string]string
	}{
		{"GET", "/pets/dog/1", "GET /pets/dog/1", nil},
		{"GET", "/pets/dog/2", "GET /pets/dog/{id}", map[string]string{"id": "2"}},
		{"PUT", "/pets/dog/2", "ANY /pets/dog/{id}", map[string]string{"id": "2"}},
		{"GET", "/pets/cat/1", "GET /pets/{kind}/{id}", map[string]string{"kind": "cat", "id": "1"}},
		{"POST", "/pets/cat/1", "POST /pets/{kind}/1", map[string]string{"kind": "cat"}},
		{"GET", "/pets/cat/1/2", "GET /pets/{proxy+}", map[string]string{"proxy": "cat/1/2"}},
		{"PUT", "/pets/dog/1/2", "ANY /pets/dog/{proxy+}", map[string]string{"proxy": "1/2"}},
		{"GET", "/cars", "GET /{proxy+}", map[string]string{"proxy": "cars"}},
		{"PUT", "/cars", "ANY /{proxy+}", map[string]string{"proxy": "cars"}},
		{"GET", "/", "$default", nil},
	}
	for _, tt := range tests {
		found, parameters, ok := r.find(tt.method, tt.path)
		if !ok || found.route.Key() != tt.key || !maps.Equal(parameters, tt.parameters) {
			t.Errorf("%s %s: %s %v, want %s %v", tt.method, tt.path, found.route.Key(), parameters, tt.key, tt.parameters)
		}
	}
}
