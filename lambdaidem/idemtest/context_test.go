package idemtest_test

import (
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// Events of payload format 2.0 contain the account and the host, like those of AWS.
func TestT1_EventsNameTheAccountAndTheHost(t *testing.T) {
	r := idemtest.Request{Key: "k"}
	api, url := r.APIGatewayV2().RequestContext, r.FunctionURL().RequestContext
	if api.AccountID == "" || api.DomainName == "" || url.AccountID == "" || url.DomainName == "" {
		t.Errorf("an HTTP API has %q and %q, a function URL %q and %q", api.AccountID, api.DomainName, url.AccountID, url.DomainName)
	}
}
