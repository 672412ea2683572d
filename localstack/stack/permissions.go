package stack

import (
	"fmt"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/iam"
)

// checkPolicies reads the policies of the functions' roles. It returns an error for a policy
// or an event source mapping that AWS would refuse.
func (s *Stack) checkPolicies(o Options) error {
	if o.NoIAM {
		return nil
	}
	var err error
	if s.iam, err = iam.New(s.template); err != nil {
		return err //nolint:wrapcheck // it says what is wrong and where
	}
	return s.iam.CheckSources() //nolint:wrapcheck // it says what is missing
}

// sayUnchecked writes which policies a local run can't check.
func (s *Stack) sayUnchecked(o Options) {
	if s.iam == nil {
		return
	}
	for _, note := range s.iam.Notes() {
		_, _ = fmt.Fprintln(o.Progress, "iam: "+note)
	}
}

// gate starts a proxy that checks the functions' permissions before a service, and returns its
// address. If nothing is checked, it returns the service's own address.
func (s *Stack) gate(service iam.Service, endpoint string, o Options) (string, error) {
	if s.iam == nil {
		return endpoint, nil
	}
	proxy, err := s.iam.Start(service, endpoint, ddblocal.DummyCredential, o.FunctionLog)
	if err != nil {
		return "", err //nolint:wrapcheck // it says what was started
	}
	s.gates = append(s.gates, proxy)
	return proxy.URL(), nil
}
