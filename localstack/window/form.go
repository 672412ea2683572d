package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// route is a route that the form can send to.
type route struct {
	Label  string // as the page shows it
	Method string
	URL    string // of the API, without a path
	Path   string
	header string // of the token; empty: the route asks for none
}

// routesOf returns the routes of a stack's APIs, and its function URLs.
func routesOf(s *stack.Stack) []route {
	urls := s.Emulator().URLs()
	var all []route
	for _, f := range s.Template().Functions {
		for _, r := range f.Routes {
			one := route{Label: fmt.Sprintf("%s (%s)", r.Key(), f.LogicalID), Method: r.Method, URL: urls[r.API], Path: r.Path}
			if r.Method == "" || r.Method == "ANY" {
				one.Method = http.MethodPost
			}
			if r.Path == "" {
				one.Path = "/"
			}
			if r.Authorizer != nil {
				one.header = r.Authorizer.Header
			}
			all = append(all, one)
		}
		if f.URL != nil {
			all = append(all, route{Label: "function URL (" + f.LogicalID + ")", Method: http.MethodPost, URL: urls[f.LogicalID], Path: "/"})
		}
	}
	slices.SortStableFunc(all, func(a, b route) int { // what a guard guards comes first
		return strings.Compare(guardedFirst(a.Method), guardedFirst(b.Method))
	})
	return all
}

func guardedFirst(method string) string {
	if method == http.MethodPost || method == http.MethodPatch {
		return ""
	}
	return method
}

// form is what the page's form says about a request.
type form struct {
	Sample string `json:"sample"` // payment, refund or transfer; empty: the other fields say what to send
	Policy string `json:"policy"` // of a transfer: rerun or hold
	Key    string `json:"key"`

	Route  int    `json:"route"` // number of a route
	Path   string `json:"path"`
	Body   string `json:"body"`
	Caller string `json:"caller"` // whom the token names
}

const (
	sampleCaller = "alice"
	isJSON       = "application/json"
)

// request returns the request that a form asks for.
func (w *Window) request(f form) (request, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Sample == "" {
		return w.freeRequest(f)
	}
	r := request{Method: http.MethodPost, Key: f.Key, Header: http.Header{
		"Content-Type": {isJSON}, "Authorization": {"Bearer " + stack.Token(sampleCaller)},
	}}
	base := w.stack.URL()
	switch f.Sample {
	case "payment":
		r.URL, r.Body = base+"/payments", `{"amount":1250,"currency":"EUR"}`
	case "refund":
		if w.controls.payment == "" {
			return r, errors.New("there is no payment to refund yet: send a payment first")
		}
		r.URL, r.Body = base+"/payments/"+w.controls.payment+"/refunds", `{"amount":400}`
	case "transfer":
		r.URL, r.Body = base+"/transfers", `{"to":"bob","amount":500,"currency":"EUR","reference":"rent"}`
		if f.Policy == "hold" {
			r.Header.Set("X-Demo-Policy", "hold")
		}
	default:
		return r, fmt.Errorf("there is no sample %q; there are payment, refund and transfer", f.Sample)
	}
	return r, nil
}

// freeRequest returns the request that the free form asks for. The caller has w.mu.
func (w *Window) freeRequest(f form) (request, error) {
	if f.Route < 0 || f.Route >= len(w.controls.routes) {
		return request{}, errors.New("choose a route: the template has none, or no such one")
	}
	to := w.controls.routes[f.Route]
	if !strings.HasPrefix(f.Path, "/") {
		return request{}, fmt.Errorf("the path is %q; begin it with a slash", f.Path)
	}
	r := request{Method: to.Method, URL: to.URL + f.Path, Key: f.Key, Body: f.Body, Header: http.Header{}}
	if json.Valid([]byte(f.Body)) {
		r.Header.Set("Content-Type", isJSON)
	}
	if to.header != "" {
		r.Header.Set(to.header, "Bearer "+stack.Token(f.Caller))
	}
	return r, nil
}

// withKey returns the request with another key.
func (r request) withKey(key string) request {
	r.Key, r.Header = key, maps.Clone(r.Header)
	return r
}
