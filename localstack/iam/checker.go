package iam

import (
	"errors"
	"fmt"
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

// Decide evaluates the policies of a function, given its logical ID, for a request. It panics if
// the template has no such function. Decide does not count the request.
func (c *Checker) Decide(function string, r Request) Decision {
	p := c.principals[function]
	if p == nil {
		panic("iam: the template has no function " + function)
	}
	return p.decide(&r)
}
