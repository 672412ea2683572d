package template

import "regexp"

// dynamicReference matches a dynamic reference, whose value CloudFormation reads from another service:
// {{resolve:ssm:NAME:VERSION}}, and the same with ssm-secure or secretsmanager ("Using dynamic references to specify
// template values").
var dynamicReference = regexp.MustCompile(`\{\{resolve:([^{}]*)\}\}`)

// value is like eval, and also replaces the dynamic references in the result. Like CloudFormation, it replaces them last,
// because the result of an intrinsic function may contain a dynamic reference.
func (e *evaluator) value(n *node) (*node, error) {
	value, err := e.eval(n)
	if err != nil {
		return nil, err
	}
	return e.resolve(n, value)
}

// resolve returns n with every dynamic reference in it replaced by its value in Options.References. at is the position for
// errors.
func (e *evaluator) resolve(at, n *node) (*node, error) {
	out := *n // a copy: other parts of the template may share the node
	var err error
	switch n.kind {
	case scalar:
		out.text = dynamicReference.ReplaceAllStringFunc(n.text, func(match string) string {
			name := dynamicReference.FindStringSubmatch(match)[1]
			value, given := e.options.References[name]
			if !given {
				e.missingReference(at, name, "%s is read from another service, which a local run has not: "+
					"give its value in template.Options.References[%q]", match, name)
			}
			return value
		})
	case list:
		out.items = make([]*node, len(n.items))
		for i, item := range n.items {
			if out.items[i], err = e.resolve(at, item); err != nil {
				return nil, err
			}
		}
	case mapping:
		out.fields = make(map[string]*node, len(n.fields))
		for key, field := range n.fields {
			if out.fields[key], err = e.resolve(at, field); err != nil {
				return nil, err
			}
		}
	default: // no other kind contains text
	}
	return &out, err
}
