package template

import (
	"strings"
	"time"
)

// Route is an event of type HttpApi or Api of a function.
type Route struct {
	API        string // the API's logical ID
	Kind       APIKind
	Method     string // upper case, or "ANY"; empty for the $default route
	Path       string // "/payments/{id}"; empty for the $default route
	Stage      string // "$default" unless the API names one
	Authorizer *Authorizer
	Scopes     []string      // the token must have one of them; empty if none is required
	Timeout    time.Duration // timeout of the integration; default 30 s for HTTP APIs, 29 s for REST APIs
	// BinaryMediaTypes are those of the REST API. It is nil for HTTP APIs.
	BinaryMediaTypes []string
}

// Key returns the route key as API Gateway writes it: "POST /payments" or
// "$default".
func (r Route) Key() string {
	if r.Path == "" {
		return "$default"
	}
	return r.Method + " " + r.Path
}

// APIKind is a kind of API Gateway API.
type APIKind int

// The kinds of API.
const (
	HTTPAPI APIKind = iota // AWS::Serverless::HttpApi, payload format 2.0
	RESTAPI                // AWS::Serverless::Api, payload format 1.0
)

func (p properties) httpAPIRoute() (Route, error) {
	route := Route{Kind: HTTPAPI}
	api, err := p.api(&route, "ApiId", "ServerlessHttpApi", "HttpApi", "AWS::Serverless::HttpApi")
	if err != nil {
		return Route{}, err
	}
	if route.Stage, err = api.text("StageName", "$default"); err != nil {
		return Route{}, err
	}
	if err := p.methodAndPath(&route); err != nil {
		return Route{}, err
	}
	milliseconds, err := p.number("TimeoutInMillis", 30_000, 50, 30_000)
	if err != nil {
		return Route{}, err
	}
	route.Timeout = time.Duration(milliseconds) * time.Millisecond
	version, err := p.text("PayloadFormatVersion", "2.0")
	if err != nil {
		return Route{}, err
	}
	if version != "2.0" {
		return Route{}, errorAt(p.node, "%s: payload format %s on an HTTP API is not emulated; use 2.0, or an Api event for format 1.0", p.owner, version)
	}
	return route, p.authorize(&route, api)
}

func (p properties) restAPIRoute() (Route, error) {
	route := Route{Kind: RESTAPI}
	api, err := p.api(&route, "RestApiId", "ServerlessRestApi", "Api", "AWS::Serverless::Api")
	if err != nil {
		return Route{}, err
	}
	if route.Stage, err = api.text("StageName", "Prod"); err != nil {
		return Route{}, err
	}
	if err := p.methodAndPath(&route); err != nil {
		return Route{}, err
	}
	if route.Path == "" {
		return Route{}, errorAt(p.node, "%s: an Api event needs Path and Method", p.owner)
	}
	milliseconds, err := p.number("TimeoutInMillis", 29_000, 50, 29_000)
	if err != nil {
		return Route{}, err
	}
	route.Timeout = time.Duration(milliseconds) * time.Millisecond
	if route.BinaryMediaTypes, err = api.texts("BinaryMediaTypes"); err != nil {
		return Route{}, err
	}
	for i, media := range route.BinaryMediaTypes {
		// In SAM, ~1 stands for a slash in a media type.
		route.BinaryMediaTypes[i] = strings.ReplaceAll(media, "~1", "/")
	}
	return route, p.authorize(&route, api)
}

// api returns the properties of an event's API: the one that the event names, or the implicit
// API.
func (p properties) api(route *Route, key, implicit, globals, kind string) (properties, error) {
	logicalID, err := p.text(key, implicit)
	if err != nil {
		return properties{}, err
	}
	route.API = logicalID
	resource := p.reader.resources.field(logicalID)
	switch {
	case resource != nil && typeOf(resource) == kind:
	case resource == nil && logicalID == implicit:
		resource = &node{kind: mapping}
	default:
		return properties{}, errorAt(p.node, "%s: %s %s is not an %s of this template", p.owner, key, logicalID, kind)
	}
	api := p.reader.properties(logicalID, globals, resource)
	for _, definition := range []string{"DefinitionBody", "DefinitionUri"} {
		if api.node.field(definition) != nil {
			return properties{}, errorAt(api.node.field(definition), "%s: %s is not read for a local run; "+
				"give the routes as events of the functions", logicalID, definition)
		}
	}
	return api, nil
}

// methodAndPath reads Method and Path. An HttpApi event without both is the $default route.
func (p properties) methodAndPath(route *Route) error {
	path, err := p.text("Path", "")
	if err != nil {
		return err
	}
	method, err := p.text("Method", "")
	if err != nil {
		return err
	}
	switch {
	case path == "" && method == "", path == "$default":
		return nil
	case path == "" || method == "":
		return errorAt(p.node, "%s: Path and Method belong together, one of them is missing", p.owner)
	case !strings.HasPrefix(path, "/"):
		return errorAt(p.node, "%s: Path must begin with a slash, got %q", p.owner, path)
	}
	route.Path, route.Method = path, strings.ToUpper(method)
	return nil
}
