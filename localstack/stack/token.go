package stack

import (
	"encoding/base64"
	"encoding/json"
)

// Issuer is the issuer of the tokens that [Token] makes.
const Issuer = "https://issuer.example.com"

const audience = "lambdaidem-local"

// Token returns a bearer token for a made-up user: an unsigned JWT (RFC 7519,
// section 6) with the claims iss, sub and aud. The emulator takes it, since it
// verifies nothing; API Gateway never would.
func Token(user string) string {
	part := func(v map[string]string) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings: can't happen
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." +
		part(map[string]string{"iss": Issuer, "sub": user, "aud": audience}) + "."
}
