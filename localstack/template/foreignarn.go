package template

import (
	"strings"
)

// foreign returns a placeholder ARN for a value that refers only to resources other than tables and
// queues, such as topics. A local run doesn't know the attributes of these resources and doesn't
// need them, because no request to DynamoDB or SQS concerns them. For any other value, foreign
// returns "".
func (r *reader) foreign(n *node) string {
	arn := ""
	for _, name := range references(n) {
		service := strings.Split(typeOf(r.resources.field(name)), "::")
		switch {
		case len(service) != 3: // a parameter, or a custom resource
		case service[1] == "DynamoDB", service[1] == "SQS":
			return ""
		case service[1] == "CloudFormation", service[1] == "SSM", service[2] == "Application":
			return "" // an output or a value may be the ARN of a table or a queue
		default:
			arn = ARN(strings.ToLower(service[1]), "", "", name)
		}
	}
	return arn
}

// references returns the names that Ref, GetAtt and Sub use in n.
func references(n *node) []string {
	if n == nil {
		return nil
	}
	var all []string
	if n.kind == call {
		switch {
		case n.fn == "Ref":
			all = append(all, n.arg.text)
		case n.fn == "GetAtt" && len(n.arg.items) > 0:
			all = append(all, n.arg.items[0].text)
		case n.fn == "Sub":
			text := n.arg.text
			if len(n.arg.items) > 0 {
				text = n.arg.items[0].text
			}
			for _, match := range substitution.FindAllStringSubmatch(text, -1) {
				name, _, _ := strings.Cut(match[1], ".")
				all = append(all, name)
			}
		}
		all = append(all, references(n.arg)...)
	}
	for _, item := range n.items {
		all = append(all, references(item)...)
	}
	for _, key := range n.keys {
		all = append(all, references(n.fields[key])...)
	}
	return all
}
