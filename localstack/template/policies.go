package template

import (
	"fmt"
	"slices"
	"strings"
)

// policies collects the statements of a role. It reports no errors, because the template may be
// valid on AWS: it notes as unknown whatever a local run can't evaluate.
type policies struct {
	reader *reader
	role   Role
}

// unknown notes why the role may allow more than its statements do.
func (p *policies) unknown(at *node, format string, args ...any) {
	p.role.Unknown = append(p.role.Unknown, fmt.Sprintf("%d:%d: ", at.line, at.column)+fmt.Sprintf(format, args...))
}

// limited warns about a permissions boundary, which a local run does not apply. Functions may
// share a role, so the warning may be there already.
func (p *policies) limited(logicalID string, boundary *node) {
	warning := errorAt(boundary, "%s: PermissionsBoundary is ignored in a local run: AWS may refuse what is allowed here", logicalID).Error()
	if !slices.Contains(p.reader.warnings, warning) {
		p.reader.warnings = append(p.reader.warnings, warning)
	}
}

// ofSAM reads an entry of a function's Policies: the name or ARN of a managed policy, a policy
// document, or a SAM policy template.
func (p *policies) ofSAM(entry *node) {
	switch {
	case entry.field("Statement") != nil:
		p.document("", entry)
	case entry.kind == mapping && len(entry.keys) == 1:
		p.samTemplate(entry, entry.keys[0], entry.fields[entry.keys[0]])
	default:
		p.managed(entry)
	}
}

// managed reads the managed policy with a name or ARN. AWS or the template defines the policy.
func (p *policies) managed(entry *node) {
	if entry.kind == call && entry.fn == "Ref" {
		if own := p.reader.resources.field(entry.arg.text); typeOf(own) == "AWS::IAM::ManagedPolicy" {
			p.document(entry.arg.text, own.field("Properties").field("PolicyDocument"))
			return
		}
	}
	value, why := p.reader.known(entry)
	if why != "" || value.kind != scalar {
		p.unknown(entry, "a managed policy is known only to AWS: %s", why)
		return
	}
	p.awsManaged(entry, value.text)
}

// attached reads a policy that is a resource of its own, unless the Condition of the resource does
// not hold.
func (p *policies) attached(logicalID string, policy *node) {
	exists := false
	p.reader.optional(func() (err error) { // if the condition is not known, Read fails at the policy itself
		exists, err = p.reader.exists(policy)
		return err
	})
	if !exists {
		return
	}
	p.document(logicalID, policy.field("Properties").field("PolicyDocument"))
}

// document reads a policy document.
func (p *policies) document(name string, document *node) {
	if document = p.reader.branch(document); document == nil {
		return
	}
	statements := p.reader.branch(document.field("Statement"))
	if document.kind != mapping || statements == nil {
		p.unknown(document, "the policy %s is %s, which is evaluated only by AWS", name, document.describe())
		return
	}
	all := []*node{statements}
	if statements.kind != mapping {
		all = p.reader.entries(statements)
	}
	for _, statement := range all {
		if statement.kind != mapping {
			p.unknown(statement, "a statement of the policy %s is %s, which is evaluated only by AWS", name, statement.describe())
			continue
		}
		p.role.Statements = append(p.role.Statements, p.reader.statement(name, statement))
	}
}

func (r *reader) statement(policy string, n *node) Statement {
	s := Statement{At: fmt.Sprintf("%d:%d", n.line, n.column), Policy: policy, Effect: r.nameOf(n, "Effect")}
	for key, to := range map[string]*[]string{
		"Action": &s.Actions, "NotAction": &s.NotActions, "Resource": &s.Resources, "NotResource": &s.NotResources,
	} {
		*to = r.texts(n.field(key), &s.Unknown)
	}
	conditions := r.branch(n.field("Condition"))
	if conditions == nil {
		return s
	}
	if conditions.kind != mapping {
		s.unknownCondition("", conditions)
	}
	for _, operator := range conditions.keys {
		keys := r.branch(conditions.fields[operator])
		if keys == nil {
			continue
		}
		if keys.kind != mapping {
			s.unknownCondition(operator, keys)
		}
		for _, key := range keys.keys {
			s.Conditions = append(s.Conditions, Condition{operator, key, r.texts(keys.fields[key], &s.Unknown)})
		}
	}
	return s
}

// unknownCondition adds a condition whose keys only AWS knows. Without this condition, the
// statement would apply to every request.
func (s *Statement) unknownCondition(operator string, keys *node) {
	s.Unknown = "the conditions are " + keys.describe()
	s.Conditions = append(s.Conditions, Condition{Operator: operator})
}

// texts returns the texts of a value or of a list. If only AWS knows one of them, texts leaves it
// out and sets unknown to the reason.
func (r *reader) texts(n *node, unknown *string) []string {
	var all []string
	for _, item := range r.entries(n) {
		if arn := r.foreign(item); arn != "" {
			all = append(all, arn)
			continue
		}
		value, why := r.known(item)
		switch {
		case why != "":
			*unknown = why
		case value.kind == scalar:
			all = append(all, value.text)
		case value.kind == list:
			all = append(all, r.texts(value, unknown)...)
		default:
			*unknown = fmt.Sprintf("%d:%d: %s", item.line, item.column, value.describe())
		}
	}
	return all
}

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

// known evaluates a value that a local run can do without. If the value is not known here, why is
// the reason; otherwise why is empty.
func (r *reader) known(n *node) (value *node, why string) {
	why = r.optional(func() (err error) {
		value, err = r.value(n)
		return err
	})
	return value, why
}

// optional calls evaluate for a value that a local run can do without. It returns the text of the
// error of evaluate, or "" if there is none. A missing parameter or dynamic reference counts as
// such an error, and does not make Read fail.
func (r *reader) optional(evaluate func() error) (why string) {
	before := r.missing
	err := evaluate()
	if len(r.missing.places) > len(before.places) {
		err = r.missing.places[len(before.places)]
		r.missing = before
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// branch returns the value that !If chooses, before its evaluation, or n itself if n is no !If or
// only AWS knows the condition. It returns nil if the value is absent.
func (r *reader) branch(n *node) *node {
	for n != nil && n.kind == call && n.fn == "If" {
		var chosen *node
		if why := r.optional(func() (err error) {
			chosen, err = r.choose(n)
			return err
		}); why != "" {
			return n
		}
		n = chosen
	}
	if n == nil || n.kind == null || r.isNoValue(n) {
		return nil
	}
	return n
}

// entries returns the items of a list, or n itself if it is no list. It leaves out the items that
// a condition removes.
func (r *reader) entries(n *node) []*node {
	n = r.branch(n)
	switch {
	case n == nil:
		return nil
	case n.kind != list:
		return []*node{n}
	}
	var all []*node
	for _, item := range n.items {
		if item = r.branch(item); item != nil {
			all = append(all, item)
		}
	}
	return all
}

func (r *reader) isNoValue(n *node) bool {
	return n.kind == noValue || n.kind == call && n.fn == "Ref" && n.arg.text == "AWS::NoValue"
}

// nameOf returns the text of the field key of n. It returns "" if there is no such field or if
// its value is not known here.
func (r *reader) nameOf(n *node, key string) string {
	field := n.field(key)
	if field == nil {
		return ""
	}
	value, why := r.known(field)
	if why != "" {
		return ""
	}
	return value.text
}

// names reports whether roles, a list of role names, contains name.
func (r *reader) names(roles *node, name string) bool {
	for _, entry := range r.entries(roles) {
		if value, why := r.known(entry); why == "" && value.text == name {
			return true
		}
	}
	return false
}
