package stack

import (
	"path/filepath"

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
