package iam

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// principal evaluates the role of a function.
type principal struct {
	role       template.Role
	session    string // ARN of the assumed role under which Lambda runs the function
	account    string
	statements []*statement
}

// newPrincipal reads the policies of a function. It returns an error for a policy that AWS
// would refuse, and for one that can't be checked.
func newPrincipal(t *template.Template, f *template.Function) (*principal, error) {
	p := &principal{
		role: f.Role, account: t.AccountID,
		session: template.ARN("sts", "", t.AccountID, "assumed-role/"+f.Role.Name+"/"+f.Name),
	}
	var errs []error
	for _, from := range f.Role.Statements {
		s, err := newStatement(from)
		switch {
		case err == nil:
			p.statements = append(p.statements, s)
		case matters(from):
			errs = append(errs, err)
		}
	}
	return p, errors.Join(errs...)
}

// keys returns all condition keys of a request: its own, and those that every request of the
// function has ("AWS global condition context keys").
func (p *principal) keys(r *Request) Keys {
	now := time.Now().UTC()
	keys := Keys{
		"aws:currenttime":      {now.Format(time.RFC3339)},
		"aws:epochtime":        {strconv.FormatInt(now.Unix(), 10)},
		"aws:principalaccount": {p.account},
		"aws:principalarn":     {p.role.ARN},
		"aws:principaltype":    {"AssumedRole"},
		"aws:securetransport":  {"true"}, // as on AWS, where the SDKs use HTTPS
	}
	if parts := strings.Split(r.Resource, ":"); len(parts) > 4 {
		keys["aws:requestedregion"], keys["aws:resourceaccount"] = parts[3:4], parts[4:5]
	}
	for name, values := range r.Keys {
		keys[name] = values
	}
	return keys
}
