package direct

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// A signing in the pool contains no session token.
func TestE1_NoTokenIsKept(t *testing.T) {
	transport := &Transport{learned: learned{signsItself: true}}
	s := transport.newSigning(&endpoint{plain: true}, &aws.Credentials{})
	s.add("x-amz-security-token:", strings.Repeat("secret", 100))
	if !bytes.Contains(s.text, []byte("secret")) {
		t.Fatalf("%q is signed", s.text)
	}
	s.done()
	if text := s.text[:cap(s.text)]; bytes.Contains(text, []byte("secret")) {
		t.Errorf("%q is kept", text)
	}
}
