package stack

import (
	"encoding/base64"
	"encoding/json"
)

// Issuer is the issuer (claim iss) of the tokens that [Token] returns.
const Issuer = "https://issuer.example.com"

const audience = "lambdaidem-local"

// Token returns a bearer token for a made-up user: an unsigned JWT (RFC 7519, section 6) with
// the claims iss, sub and aud. The emulator accepts it, because it verifies no token. API
// Gateway would refuse it.
func Token(user string) string {
	part := func(v map[string]string) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // can't happen: v has only strings
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." +
		part(map[string]string{"iss": Issuer, "sub": user, "aud": audience}) + "."
}
