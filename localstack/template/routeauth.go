package template

import (
	"strings"
)

// Authorizer is a JWT authorizer of an HTTP API or a Cognito authorizer of a
// REST API.
type Authorizer struct {
	Name   string
	Header string // request header with the token, default "Authorization"
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
