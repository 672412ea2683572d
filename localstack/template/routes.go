package template

import (
	"strings"
	"time"
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

func (p properties) authorize(route *Route, api properties) error {
	apiAuth, _, err := api.inner("Auth")
	if err != nil {
		return err
	}
	name, err := apiAuth.text("DefaultAuthorizer", "NONE")
	if err != nil {
		return err
	}
	auth, _, err := p.inner("Auth")
	if err != nil {
		return err
	}
	if name, err = auth.text("Authorizer", name); err != nil {
		return err
	}
	if auth.node.field("ApiKeyRequired") != nil || apiAuth.node.field("ApiKeyRequired") != nil {
		return errorAt(p.node, "%s: ApiKeyRequired is not emulated in a local run", p.owner)
	}
	if name == "NONE" {
		return nil
	}
	definitions, _, err := apiAuth.inner("Authorizers")
	if err != nil {
		return err
	}
	definition, ok, err := definitions.inner(name)
	if err != nil {
		return err
	}
	if !ok {
		return errorAt(p.node, "%s: authorizer %s is not one of the Authorizers of %s (AWS_IAM is not emulated)", p.owner, name, route.API)
	}
	return definition.authorizer(route, name, auth)
}

func (p properties) authorizer(route *Route, name string, auth properties) error {
	kind := "JwtConfiguration"
	if route.Kind == RESTAPI {
		kind = "UserPoolArn"
	}
	if p.node.field(kind) == nil {
		return errorAt(p.node, "%s: only authorizers with %s are emulated on this kind of API", p.owner, kind)
	}
	authorizer := &Authorizer{Name: name, Header: "Authorization"}
	if source := p.node.field("IdentitySource"); source != nil && route.Kind == HTTPAPI {
		header, ok := strings.CutPrefix(source.text, "$request.header.")
		if !ok {
			return errorAt(source, "%s: IdentitySource %s is not emulated, only $request.header.NAME is", p.owner, source.describe())
		}
		authorizer.Header = header
	}
	route.Authorizer = authorizer
	var err error
	if route.Scopes, err = p.texts("AuthorizationScopes"); err != nil {
		return err
	}
	if auth.node.field("AuthorizationScopes") != nil {
		route.Scopes, err = auth.texts("AuthorizationScopes")
	}
	return err
}
