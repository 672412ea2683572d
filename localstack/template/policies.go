package template

import (
	"fmt"
	"slices"
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
