package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// withParameter returns a template whose function uses the value of a parameter in its name and
// in two variables.
func withParameter(parameter string) string {
	return "Parameters:\n  P: " + parameter + `
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub pay-${P}
      Environment: {Variables: {ONE: !Ref P}}
`
}

func TestD1_AParameterOfTheParameterStoreTakesTheValueThatIsGiven(t *testing.T) {
	for _, kind := range []string{"String", "AWS::EC2::Image::Id"} {
		for _, rest := range []string{"", ", Default: /shop/name", ", Default: /shop/name, AllowedValues: [/shop/name, /shop/other]"} {
			text := withParameter("{Type: 'AWS::SSM::Parameter::Value<" + kind + ">'" + rest + "}")
			sam, err := template.Parse("t.yaml", []byte(text), template.Options{Parameters: map[string]string{"P": "fast"}})
			if err != nil {
				t.Errorf("%s%s: %v", kind, rest, err)
				continue
			}
			if f := sam.Functions[0]; f.Name != "pay-fast" || f.Environment["ONE"] != "fast" {
				t.Errorf("%s%s: name %q, ONE %q; want the value that was given", kind, rest, f.Name, f.Environment["ONE"])
			}
		}
	}
}

func TestD1_AListOfTheParameterStoreIsAList(t *testing.T) {
	for _, kind := range []string{"List<String>", "CommaDelimitedList", "List<AWS::EC2::Subnet::Id>"} {
		text := `Parameters:
  P:
    Type: AWS::SSM::Parameter::Value<` + kind + `>
    Default: /shop/names
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      Environment: {Variables: {SECOND: !Select [1, !Ref P], ALL: !Join ['+', !Ref P]}}
`
		sam, err := template.Parse("t.yaml", []byte(text), template.Options{Parameters: map[string]string{"P": "a, b"}})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if diff := cmp.Diff(map[string]string{"SECOND": "b", "ALL": "a+b"}, sam.Functions[0].Environment); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// The value of this type is the name of a parameter in Parameter Store, and !Ref returns that
// name, not the stored value.
func TestD1_ANameInTheParameterStoreIsAValueOfItsOwn(t *testing.T) {
	text := withParameter("{Type: 'AWS::SSM::Parameter::Name', Default: table}")
	for want, given := range map[string]map[string]string{"table": nil, "other": {"P": "other"}} {
		sam, err := template.Parse("t.yaml", []byte(text), template.Options{Parameters: given})
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := sam.Functions[0].Environment["ONE"]; got != want {
			t.Errorf("ONE is %q, want %q", got, want)
		}
	}
}

func TestD1_AMissingValueIsNamedWithTheWayToGiveIt(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml string
		want []string
	}{
		"from the store": {withParameter("{Type: 'AWS::SSM::Parameter::Value<String>'}"), []string{
			"t.yaml:7:21: parameter P", "AWS::SSM::Parameter::Value<String>", `Options.Parameters["P"]`,
		}},
		"from the store, its name there": {withParameter("{Type: 'AWS::SSM::Parameter::Value<String>', Default: /shop/name}"), []string{
			"parameter P", "Default /shop/name is its name", `Options.Parameters["P"]`,
		}},
		"plain": {withParameter("{Type: String}"), []string{"parameter P", `Options.Parameters["P"]`}},
	} {
		_, err := template.Parse("t.yaml", []byte(tt.yaml), template.Options{})
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", name, err, want)
			}
		}
	}
}
