package emulator

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/template"
)

var (
	errUnauthorized = errors.New("no token, or not a JWT")
	errForbidden    = errors.New("the token has none of the route's scopes")
)

// identity is what a token says of its bearer.
type identity struct {
	claims map[string]any // numbers as json.Number
	scopes []string       // of the token, on a route that asks for scopes
}

// authorize reads the bearer's claims. Neither the signature nor the issuer,
// the audience or the times are verified. A route without an authorizer has
// nobody: nil.
func authorize(route template.Route, r *http.Request) (*identity, error) {
	if route.Authorizer == nil {
		return nil, nil
	}
	token := r.Header.Get(route.Authorizer.Header)
	if scheme, rest, ok := strings.Cut(token, " "); ok && strings.EqualFold(scheme, "Bearer") {
		token = strings.TrimSpace(rest)
	}
	claims, err := readClaims(token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnauthorized, err)
	}
	id := &identity{claims: claims}
	if len(route.Scopes) == 0 {
		return id, nil
	}
	id.scopes = tokenScopes(claims)
	for _, scope := range id.scopes {
		if slices.Contains(route.Scopes, scope) {
			return id, nil
		}
	}
	return nil, errForbidden
}

// readClaims decodes a JWT (RFC 7519, compact form) without verifying it.
func readClaims(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("it does not have three parts")
	}
	var header, claims map[string]any
	for i, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, fmt.Errorf("a part is not base64url: %w", err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // a number's text must survive
		if err := decoder.Decode(into); err != nil {
			return nil, fmt.Errorf("a part is not a JSON object: %w", err)
		}
	}
	if claims == nil {
		return nil, errors.New("the claims are not a JSON object")
	}
	return claims, nil
}

// tokenScopes reads the scope claim, or scp ("JWT authorizers for HTTP APIs").
func tokenScopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		switch value := claims[name].(type) {
		case string:
			return strings.Fields(value)
		case []any:
			var scopes []string
			for _, item := range value {
				if text, ok := item.(string); ok {
					scopes = append(scopes, text)
				}
			}
			return scopes
		}
	}
	return nil
}

// texts returns the claims as API Gateway writes them into the event: every value
// is a string; join makes one of an array's items. Null claims are left out.
func (id *identity) texts(join func([]string) string) map[string]string {
	out := map[string]string{}
	for name, value := range id.claims {
		if value != nil {
			out[name] = claimText(value, join)
		}
	}
	return out
}

func claimText(value any, join func([]string) string) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		items := make([]string, 0, len(value))
		for _, item := range value {
			items = append(items, claimText(item, join))
		}
		return join(items)
	default: // json.Number, bool, object
		return string(mustJSON(value))
	}
}

// An HTTP API writes an array claim as [a b], a REST API as a,b.
func bracketed(items []string) string { return "[" + strings.Join(items, " ") + "]" }
func commas(items []string) string    { return strings.Join(items, ",") }
