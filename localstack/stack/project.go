package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/mailer"
)

// own prepares the options for this project's template. It starts the clearing house that the
// transfers function calls and the mailer that the notifications function calls. It sets their
// URLs, the issuer and audience of [Token], and DEMO=1, with which the functions obey X-Demo-
// headers.
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

// over adds the entries of upper to under, and returns under.
func over(under, upper map[string]string) map[string]string {
	for name, value := range upper {
		under[name] = value
	}
	return under
}

// modulePath is the first line of this project's go.mod.
const modulePath = "module github.com/lambdaidem/toolkit\n"

// moduleRoot returns this project's folder, which is the working directory or a parent of it.
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
