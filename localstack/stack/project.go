package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/mailer"
)

// own adds what this project's own template needs beside it: the clearing house
// that the transfers function calls, the mailer of notifications, who signs the tokens of [Token], and DEMO=1,
// which makes the functions honour the X-Demo- headers.
func (s *Stack) own(o *Options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if s.clearing, err = clearing.Start(); err != nil {
		return err
	}
	if s.mailer, err = mailer.Start(); err != nil {
		return err
	}
	o.Template = filepath.Join(root, "template.yaml")
	o.Parameters = over(map[string]string{
		"JwtIssuer": Issuer, "JwtAudience": audience, "ClearingUrl": s.clearing.URL(), "MailerUrl": s.mailer.URL(),
	}, o.Parameters)
	o.Env = over(map[string]string{"DEMO": "1"}, o.Env)
	return nil
}

// over lays one map over another.
func over(under, upper map[string]string) map[string]string {
	for name, value := range upper {
		under[name] = value
	}
	return under
}

// modulePath is the first line of our go.mod.
const modulePath = "module github.com/lambdaidem/toolkit\n"

// moduleRoot finds this project's folder at or above the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the project's folder: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of github.com/lambdaidem/toolkit: "+
				"run this from one, since it builds the functions that are in it, or name a template of your own (up: -template FILE)", start)
		}
	}
}
