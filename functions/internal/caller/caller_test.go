package caller_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/caller"
)

func TestF2_CallerIsWhomTheGatewayVouchesFor(t *testing.T) {
	token := func(claims map[string]string) events.APIGatewayV2HTTPRequestContext {
		return events.APIGatewayV2HTTPRequestContext{Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}}}
	}
	tests := []struct {
		name   string
		rc     events.APIGatewayV2HTTPRequestContext
		want   string
		wantOK bool
	}{
		{"no authorizer", events.APIGatewayV2HTTPRequestContext{}, "", true},
		{"issuer and subject", token(map[string]string{"iss": "https://a", "sub": "1"}), "https://a 1", true},
		{"another issuer, same subject", token(map[string]string{"iss": "https://b", "sub": "1"}), "https://b 1", true},
		{"no subject", token(map[string]string{"iss": "https://a"}), "", false},
		{"no issuer", token(map[string]string{"sub": "1"}), "", false},
		{"no claims", token(nil), "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := caller.Of(tt.rc); got != tt.want || ok != tt.wantOK {
				t.Errorf("Of = %q, %v; want %q, %v", got, ok, tt.want, tt.wantOK)
			}
		})
	}
}
