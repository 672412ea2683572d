package direct

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// rehearsalCredentials provides fixed, invented credentials for the test request of the method
// rehearse, because getting the user's credentials may take a network request. The user's own
// provider is asked only for the sources of its credentials, such as the environment, because the
// User-Agent names them; see ProviderSources.
type rehearsalCredentials struct{ provider aws.CredentialsProvider }

// rehearsalSecret is the secret access key of rehearsalCredentials. It is as long as the secret
// access keys of AWS, because Go's FIPS 140-only mode panics for keys of less than 112 bits.
const rehearsalSecret = "REHEARSAL-REHEARSAL-REHEARSAL-REHEARSAL-"

func (rehearsalCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "REHEARSAL", SecretAccessKey: rehearsalSecret, SessionToken: "REHEARSAL", AccountID: "123456789012"}, nil
}

// ProviderSources returns the sources of the user's credentials, such as the environment. The
// SDK names these sources in the User-Agent. rehearse copies the User-Agent of the test request
// for all later requests, so the test request must name the user's sources.
func (r rehearsalCredentials) ProviderSources() []aws.CredentialSource {
	if of, ok := r.provider.(aws.CredentialProviderSource); ok {
		return of.ProviderSources()
	}
	return nil
}
