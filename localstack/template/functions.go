package template

import (
	"strconv"
	"strings"
	"time"
)

// properties are a resource's Properties with the Globals of its kind beneath.
type properties struct {
	reader *reader
	owner  string // the logical ID, for errors
	node   *node
}

func (r *reader) properties(logicalID, globals string, resource *node) properties {
	own := resource.field("Properties")
	if own == nil {
		own = &node{kind: mapping, fields: map[string]*node{}, line: resource.line, column: resource.column}
	}
	return properties{r, logicalID, merge(r.globals.field(globals), own)}
}

// merge lays own over global as "Globals section of the AWS SAM template"
// says: mappings are merged, lists are concatenated, anything else is replaced.
func merge(global, own *node) *node {
	switch {
	case global == nil:
		return own
	case own == nil:
		return global
	case global.kind == mapping && own.kind == mapping:
		out := &node{kind: mapping, fields: map[string]*node{}, line: own.line, column: own.column}
		for _, key := range global.keys {
			out.keys = append(out.keys, key)
			out.fields[key] = merge(global.fields[key], own.fields[key])
		}
		for _, key := range own.keys {
			if _, done := out.fields[key]; !done {
				out.keys = append(out.keys, key)
				out.fields[key] = own.fields[key]
			}
		}
		return out
	case global.kind == list && own.kind == list:
		return &node{
			kind: list, line: own.line, column: own.column,
			items: append(append([]*node{}, global.items...), own.items...),
		}
	default:
		return own
	}
}

// get evaluates one property; nil means that it is not there.
func (p properties) get(key string) (*node, error) {
	raw := p.node.field(key)
	if raw == nil {
		return nil, nil
	}
	value, err := p.reader.eval(raw)
	if err != nil {
		return nil, err
	}
	if value.kind == noValue || value.kind == null {
		return nil, nil
	}
	return value, nil
}

// text reads a scalar property; fallback is returned where it is not there.
func (p properties) text(key, fallback string) (string, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return fallback, err
	}
	if value.kind != scalar {
		return "", errorAt(value, "%s: %s must be text, got %s", p.owner, key, value.describe())
	}
	return value.text, nil
}

// number reads a whole number between least and most.
func (p properties) number(key string, fallback, least, most int) (int, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return fallback, err
	}
	number, err := strconv.Atoi(value.text)
	if value.kind != scalar || err != nil || number < least || number > most {
		return 0, errorAt(value, "%s: %s must be a whole number from %d to %d, got %s", p.owner, key, least, most, value.describe())
	}
	return number, nil
}

// texts reads a list of scalars.
func (p properties) texts(key string) ([]string, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return nil, err
	}
	if value.kind != list {
		return nil, errorAt(value, "%s: %s must be a list, got %s", p.owner, key, value.describe())
	}
	var out []string
	for _, item := range value.items {
		if item.kind != scalar {
			return nil, errorAt(item, "%s: %s must be a list of texts, got %s in it", p.owner, key, item.describe())
		}
		out = append(out, item.text)
	}
	return out, nil
}

// inner reads a property that is a mapping itself; what is in it is evaluated
// only when it is read. Where the property is missing, ok is false and the
// result has no fields.
func (p properties) inner(key string) (inner properties, ok bool, err error) {
	inner = properties{p.reader, p.owner + "." + key, p.node.field(key)}
	if inner.node != nil && inner.node.kind == call {
		if inner.node, err = p.get(key); err != nil {
			return properties{}, false, err
		}
	}
	if inner.node == nil || inner.node.kind == null {
		inner.node = &node{kind: mapping, line: p.node.line, column: p.node.column}
		return inner, false, nil
	}
	if inner.node.kind != mapping {
		return properties{}, false, errorAt(inner.node, "%s: %s must be a mapping, got %s", p.owner, key, inner.node.describe())
	}
	return inner, true, nil
}

func (r *reader) function(logicalID string, resource *node) (*Function, error) {
	p := r.properties(logicalID, "Function", resource)
	f := &Function{LogicalID: logicalID}
	var err error
	if f.Name, err = p.text("FunctionName", logicalID); err != nil {
		return nil, err
	}
	if f.Handler, err = p.text("Handler", ""); err != nil {
		return nil, err
	}
	if f.CodeURI, err = p.text("CodeUri", ""); err != nil {
		return nil, err
	}
	if f.MemoryMB, err = p.number("MemorySize", 128, 128, 10240); err != nil {
		return nil, err
	}
	seconds, err := p.number("Timeout", 3, 1, 900)
	if err != nil {
		return nil, err
	}
	f.Timeout = time.Duration(seconds) * time.Second
	logging, _, err := p.inner("LoggingConfig")
	if err != nil {
		return nil, err
	}
	if f.LogGroup, err = logging.text("LogGroup", "/aws/lambda/"+f.Name); err != nil {
		return nil, err
	}
	if f.LogFormat, err = logging.text("LogFormat", "Text"); err != nil {
		return nil, err
	}
	if f.Environment, err = p.environment(); err != nil {
		return nil, err
	}
	if err := p.events(f); err != nil {
		return nil, err
	}
	f.URL, err = p.functionURL()
	return f, err
}

func (p properties) environment() (map[string]string, error) {
	out := map[string]string{}
	environment, _, err := p.inner("Environment")
	if err != nil {
		return nil, err
	}
	variables, _, err := environment.inner("Variables")
	if err != nil {
		return nil, err
	}
	for _, key := range variables.node.keys {
		value, err := variables.get(key)
		if err != nil {
			return nil, err
		}
		if value == nil { // AWS::NoValue
			continue
		}
		if out[key], err = variables.text(key, ""); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p properties) functionURL() (*FunctionURL, error) {
	config, ok, err := p.inner("FunctionUrlConfig")
	if err != nil || !ok {
		return nil, err
	}
	for key, supported := range map[string]string{"AuthType": "NONE", "InvokeMode": "BUFFERED"} {
		value, err := config.text(key, supported)
		if err != nil {
			return nil, err
		}
		if value != supported {
			return nil, errorAt(config.node, "%s: %s %s is not emulated in a local run, only %s is", config.owner, key, value, supported)
		}
	}
	return &FunctionURL{}, nil
}

func (p properties) events(f *Function) error {
	events, ok, err := p.inner("Events")
	if err != nil || !ok {
		return err
	}
	for _, name := range events.node.keys {
		event, _, err := events.inner(name)
		if err != nil {
			return err
		}
		kind, err := event.text("Type", "")
		if err != nil {
			return err
		}
		given, _, err := event.inner("Properties")
		if err != nil {
			return err
		}
		var route Route
		switch kind {
		case "HttpApi":
			route, err = given.httpAPIRoute()
		case "Api":
			route, err = given.restAPIRoute()
		default:
			f.OtherEvents = append(f.OtherEvents, name+" ("+kind+")")
			continue
		}
		if err != nil {
			return err
		}
		f.Routes = append(f.Routes, route)
	}
	return nil
}

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
		// SAM writes a slash in a media type as ~1.
		route.BinaryMediaTypes[i] = strings.ReplaceAll(media, "~1", "/")
	}
	return route, p.authorize(&route, api)
}

// api finds the API of an event: the one it names, or the implicit one.
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
			return properties{}, errorAt(api.node.field(definition), "%s: %s is not read for a local run; give the routes as events of the functions", logicalID, definition)
		}
	}
	return api, nil
}

// methodAndPath reads Method and Path; an HttpApi event without either is the
// $default route.
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
