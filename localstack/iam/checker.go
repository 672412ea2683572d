package iam

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// Checker decides which requests the functions of a template may make, and counts the requests.
// Its methods are safe for concurrent use.
type Checker struct {
	template   *template.Template
	principals map[string]*principal // by logical ID
	dynamoDB   *dynamoDB

	mu   sync.Mutex
	uses map[useKey]Use
}

type useKey struct {
	function, action, resource string
	allowed                    bool
}

// New returns a Checker for the functions of a template. It returns an error for a policy that AWS
// would refuse, such as one with a name in place of an ARN, and for an unknown condition
// operator. The error has the place of the statement in the template.
func New(t *template.Template) (*Checker, error) {
	c := &Checker{template: t, principals: map[string]*principal{}, dynamoDB: newDynamoDB(t.Tables), uses: map[useKey]Use{}}
	var errs []error
	for _, f := range t.Functions {
		p, err := newPrincipal(t, f)
		errs = append(errs, err)
		c.principals[f.LogicalID] = p
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("iam: %w", err)
	}
	return c, nil
}

// Notes returns a line for each part of the policies that can't be checked: a role of which only
// AWS knows all policies, a value or a condition key that only AWS knows.
func (c *Checker) Notes() []string {
	var notes []string
	for _, f := range c.template.Functions {
		p := c.principals[f.LogicalID]
		for _, why := range f.Role.Unknown {
			notes = append(notes, fmt.Sprintf("the permissions of %s are not checked, only what its policies deny: %s", f.LogicalID, why))
		}
		for _, s := range p.statements {
			if !matters(s.Statement) {
				continue
			}
			if s.Unknown != "" {
				notes = append(notes, fmt.Sprintf("%s: this statement of %s has a value that only AWS knows: %s", s.At, f.LogicalID, s.Unknown))
			}
			for _, condition := range s.conditions {
				if condition.key != "" && !decidable(condition.key) {
					notes = append(notes, fmt.Sprintf("%s: the condition %s of %s is not checked, because only AWS knows its key", s.At, condition.text, f.LogicalID))
				}
			}
		}
	}
	return notes
}

// Decide evaluates the policies of a function, given its logical ID, for a request. It panics if
// the template has no such function. Decide does not count the request.
func (c *Checker) Decide(function string, r Request) Decision {
	p := c.principals[function]
	if p == nil {
		panic("iam: the template has no function " + function)
	}
	return p.decide(&r)
}

// count counts a request. It reports whether the request is the first with its function, action,
// resource and result.
func (c *Checker) count(function string, r Request, d Decision) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := useKey{function, r.Action, r.Resource, d.Allowed}
	use, seen := c.uses[key]
	if !seen {
		use = Use{Function: function, Request: r, Allowed: d.Allowed}
	}
	use.Count++
	c.uses[key] = use
	for _, g := range d.used {
		g.used++
	}
	return !seen
}

// CheckSources returns an error if the role of a function lacks a permission that Lambda needs to
// read the function's queues and streams, or to send to an OnFailure queue. AWS refuses to
// create such an event source mapping ("Using Lambda with Amazon SQS" and "Using AWS Lambda with
// Amazon DynamoDB", under permissions).
func (c *Checker) CheckSources() error {
	var errs []error
	for _, f := range c.template.Functions {
		for _, source := range f.Sources {
			needed := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
			if source.Table != "" {
				needed = []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}
			}
			for _, action := range needed {
				errs = append(errs, c.checkSource(f, source.Name, Request{Action: action, Resource: source.ARN}))
			}
			if strings.Contains(source.OnFailure, ":sqs:") {
				errs = append(errs, c.checkSource(f, source.Name, Request{Action: "sqs:SendMessage", Resource: source.OnFailure}))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("iam: AWS would refuse an event source mapping, because a role lacks a permission: %w", err)
	}
	return nil
}

func (c *Checker) checkSource(f *template.Function, source string, r Request) error {
	d := c.Decide(f.LogicalID, r)
	c.count(f.LogicalID, r, d)
	if d.Allowed {
		return nil
	}
	return fmt.Errorf("%s/%s needs %s on %s: %s; add it to the policies of %s", f.LogicalID, source, r.Action, r.Resource, d.Reason, f.Role.Name)
}
