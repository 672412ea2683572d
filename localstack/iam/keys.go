package iam

import (
	"regexp"
	"strings"
)

// Keys maps the condition keys of a request to their values. The keys must be in lower case,
// because IAM ignores the case of a key. A key without values is absent from the request.
type Keys map[string][]string

// perRequest lists the condition keys that only some requests to DynamoDB have. A local run knows
// whether a request has them, so an absent key is decidable.
var perRequest = map[string]bool{
	leadingKeys: true, enclosingOperation: true, returnValues: true, selected: true, returnConsumedCapacity: true,
}

// multivalued lists the condition keys that may have several values in one request.
var multivalued = map[string]bool{leadingKeys: true, "dynamodb:attributes": true}

// always lists the condition keys that every request has.
var always = map[string]bool{
	"aws:currenttime": true, "aws:epochtime": true, "aws:principalaccount": true, "aws:principalarn": true, "aws:principaltype": true,
	"aws:requestedregion": true, "aws:resourceaccount": true, "aws:securetransport": true,
}

// decidable reports whether a local run knows the value of a condition key. The key is in lower
// case.
func decidable(key string) bool { return perRequest[key] || always[key] }

// variable matches a policy variable, such as ${aws:PrincipalArn}, with its default value if it
// has one: ${aws:PrincipalArn, 'none'}.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces the policy variables in a pattern ("IAM policy elements: Variables and tags").
// A pattern with a variable that the request does not have matches nothing.
func (k Keys) expand(pattern string) (string, truth) {
	result := yes
	text := variable.ReplaceAllStringFunc(pattern, func(match string) string {
		name, fallback, hasFallback := strings.Cut(match[2:len(match)-1], ",")
		switch name {
		case "*", "?", "$":
			return quote(name)
		}
		name = strings.ToLower(strings.TrimSpace(name))
		switch values := k[name]; {
		case len(values) == 1:
			return quote(values[0])
		case !decidable(name):
			result = undecided
		case hasFallback:
			return quote(strings.Trim(strings.TrimSpace(fallback), "'"))
		case result == yes:
			result = no
		}
		return ""
	})
	return text, result
}
