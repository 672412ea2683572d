package template_test

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestD1_ReadsWhatALocalRunNeeds(t *testing.T) {
	got, err := template.Read("testdata/template.yaml", template.Options{Region: "eu-west-1", StackName: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	jwt := &template.Authorizer{Name: "Jwt", Header: "X-Token"}
	arn := "arn:aws:dynamodb:eu-west-1:000000000000:table/Payments"
	want := &template.Template{
		Region:    "eu-west-1",
		AccountID: "000000000000",
		Functions: []*template.Function{
			{
				LogicalID: "Create", Name: "shop-create", Handler: "bootstrap",
				MemoryMB: 128, Timeout: 10 * time.Second, LogGroup: "/aws/lambda/shop-create", LogFormat: "Text",
				Environment: map[string]string{
					"TABLE": "Payments", "STAGE": "not live", "ARN": arn,
					"SUB":    "b of " + arn + " and ${literal}",
					"JOINED": "a-eu-west-1-000000000000", "SPLIT": "b", "LOGIC": "right",
				},
				Routes: []template.Route{
					{API: "HttpApi", Method: "POST", Path: "/payments", Stage: "$default", Authorizer: jwt, Scopes: []string{"pay"}, Timeout: time.Second},
					{API: "HttpApi", Method: "ANY", Path: "/open/{proxy+}", Stage: "$default", Timeout: 30 * time.Second},
					{
						API: "RestApi", Kind: template.RESTAPI, Method: "GET", Path: "/payments/{id}", Stage: "dev",
						Authorizer: &template.Authorizer{Name: "Pool", Header: "Authorization"}, Timeout: 29 * time.Second,
						BinaryMediaTypes: []string{"image/png", "application/octet-stream"},
					},
				},
				OtherEvents: []string{"Queue (SQS)"},
			},
			{
				LogicalID: "Direct", Name: "Direct", Handler: "bootstrap",
				MemoryMB: 128, Timeout: 3 * time.Second, LogGroup: "/direct/dev", LogFormat: "JSON",
				Environment: map[string]string{"TABLE": "Payments", "STAGE": "dev"},
				Routes:      []template.Route{{API: "ServerlessHttpApi", Stage: "$default", Timeout: 30 * time.Second}},
				URL:         &template.FunctionURL{},
			},
		},
		Tables: []template.Table{{
			LogicalID: "Payments", Name: "Payments", TTLAttribute: "expiration",
			Attributes: []template.Attribute{{Name: "id", Type: "S"}, {Name: "at", Type: "N"}, {Name: "owner", Type: "S"}},
			Key:        []template.KeyPart{{Name: "id", Type: "HASH"}, {Name: "at", Type: "RANGE"}},
			Indexes: []template.Index{{
				Name: "byOwner", Key: []template.KeyPart{{Name: "owner", Type: "HASH"}},
				Projection: "INCLUDE", NonKey: []string{"amount"},
			}},
		}},
	}
	// The default authorizer comes from Globals, so the implicit API has it too.
	want.Functions[1].Routes[0].Authorizer = jwt
	roles := cmpopts.IgnoreFields(template.Function{}, "Role") // see TestRole
	if diff := cmp.Diff(want, got, roles); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestD1_ParametersOverrideDefaults(t *testing.T) {
	got, err := template.Read("testdata/template.yaml", template.Options{Parameters: map[string]string{"Stage": "prod"}})
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Function("OnlyProd"); f == nil {
		t.Error("the function under the condition IsProd is missing")
	}
	if f := got.Function("Create"); f.MemoryMB != 1024 || f.Environment["STAGE"] != "live" {
		t.Errorf("memory %d, STAGE %q; want 1024, live", f.MemoryMB, f.Environment["STAGE"])
	}
	if name := got.Tables[0].Name; name != "payments" {
		t.Errorf("table %s, want payments", name)
	}
}

// The project's own template can be read without values for its parameters, so that a local run
// needs none.
func TestD1_ReadsTheProjectsTemplate(t *testing.T) {
	got, err := template.Read(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string][]string{}
	for _, f := range got.Functions {
		for _, r := range f.Routes {
			routes[f.LogicalID] = append(routes[f.LogicalID], r.Key())
		}
		own := map[string]string{"IDEMPOTENCY_TABLE": "IdempotencyTable", "IDEMPOTENCY_LEASE_INDEX": "leases", "ACCOUNTS_TABLE": "AccountsTable", "SERVICE_NAME": "local"}
		maps.Copy(own, map[string]map[string]string{
			"PaymentsFunction":      {"PAYMENTS_TABLE": "PaymentsTable"},
			"RefundsFunction":       {"PAYMENTS_TABLE": "PaymentsTable"},
			"TransfersFunction":     {"TRANSFERS_TABLE": "TransfersTable", "CLEARING_URL": ""},
			"ReceiptsFunction":      {"RECEIPTS_TABLE": "ReceiptsTable", "NOTIFICATIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/NotificationsQueue.fifo"},
			"NotificationsFunction": {"MAILER_URL": ""},
			"WatchFunction":         {"WATCHED_ROUTES": "POST /payments,POST /payments/{id}/refunds,POST /transfers,receipt,notification"},
		}[f.LogicalID])
		if diff := cmp.Diff(own, f.Environment); diff != "" {
			t.Errorf("environment of %s (-want +got):\n%s", f.LogicalID, diff)
		}
	}
	want := map[string][]string{
		"PaymentsFunction":  {"POST /payments", "GET /payments/{id}", "GET /health"},
		"RefundsFunction":   {"POST /payments/{id}/refunds"},
		"TransfersFunction": {"POST /transfers"},
	}
	if diff := cmp.Diff(want, routes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	ttl := map[string]string{}
	for _, table := range got.Tables {
		ttl[table.Name] = table.TTLAttribute
	}
	if diff := cmp.Diff(map[string]string{"IdempotencyTable": "expiration", "PaymentsTable": "", "AccountsTable": "", "TransfersTable": "", "ReceiptsTable": ""}, ttl); diff != "" {
		t.Errorf("tables and their TTL (-want +got):\n%s", diff)
	}
}

func TestD1_ErrorsNameThePlace(t *testing.T) {
	function := func(properties string) string {
		return "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      " + properties + "\n"
	}
	tests := []struct{ name, yaml, want string }{
		{"unsupported function", function("Timeout: !ImportValue t"), "t.yaml:5:16: the intrinsic function ImportValue is not supported"},
		{"long spelling", function("Timeout: {'Fn::GetAZs': x}"), "t.yaml:5:16: the intrinsic function GetAZs is not supported"},
		{"unquoted long spelling in braces", function("Timeout: {Fn::GetAZs: x}"), "t.yaml:5:16: the intrinsic function GetAZs is not supported"},
		{"function before a brace", function("Timeout: { A: !GetAZs AWS::x:y }"), "t.yaml:5:21: the intrinsic function GetAZs is not supported"},
		{"unknown name", function("FunctionName: !Ref Nobody"), "t.yaml:5:21: Nobody is neither a parameter nor a resource"},
		{"unknown attribute", function("Handler: !GetAtt F.Version"), "t.yaml:5:16: attribute Version of F (AWS::Serverless::Function) is not known"},
		{"name in a circle", function("FunctionName: !Sub ${F}-1"), "the name of F refers to itself"},
		{"unknown in Sub", function("FunctionName: !Sub a-${Nobody}"), "t.yaml:5:21: Nobody is neither"},
		{"wrong type", function("Timeout: soon"), `t.yaml:5:16: F: Timeout must be a whole number from 1 to 900, got "soon"`},
		{"out of range", function("Timeout: 901"), "from 1 to 900"},
		{"environment not a mapping", function("Environment: [a]"), "t.yaml:5:20: F: Environment must be a mapping, got a list"},
		{"unknown condition", function("Timeout: !If [No, 1, 2]"), "No is not one of the template's Conditions"},
		{"condition in a circle", "Conditions:\n  A: !Not [!Condition B]\n  B: !Not [!Condition A]\n" + function("Timeout: !If [A, 1, 2]"), "condition A refers to itself"},
		{"parameter without value", "Parameters:\n  P: {Type: String}\n" + function("FunctionName: !Ref P"), "t.yaml:7:21: parameter P has no default and no value was given"},
		{"parameter from the store", "Parameters:\n  P: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /a}\n" + function("FunctionName: !Ref P"), "Parameter Store"},
		{"parameter out of its values", "Parameters:\n  P: {Type: String, Default: a, AllowedValues: [b]}\n" + function("FunctionName: !Ref P"), "not one of its AllowedValues"},
		{"no such mapping", function("Timeout: !FindInMap [A, b, c]"), `there is no "A" in Mappings`},
		{"Managed Instances without a number", function("CapacityProviderConfig: {Arn: a}"), "t.yaml:5:31: F.CapacityProviderConfig: a local run needs PerExecutionEnvironmentMaxConcurrency"},
		{"Managed Instances out of range", function("CapacityProviderConfig: {PerExecutionEnvironmentMaxConcurrency: 1601}"), "from 1 to 1600"},
		{"an object in a bucket without a key", function("CodeUri: {Bucket: b}"), "Key is missing"},
		{"path without method", function("Events: {E: {Type: HttpApi, Properties: {Path: /a}}}"), "Path and Method belong together"},
		{"relative path", function("Events: {E: {Type: HttpApi, Properties: {Path: a, Method: get}}}"), "must begin with a slash"},
		{"unknown API", function("Events: {E: {Type: HttpApi, Properties: {ApiId: Other, Path: /a, Method: get}}}"), "Other is not an AWS::Serverless::HttpApi"},
		{"format 1.0 on an HTTP API", function("Events: {E: {Type: HttpApi, Properties: {PayloadFormatVersion: '1.0'}}}"), "payload format 1.0 on an HTTP API is not emulated"},
		{"IAM authorizer", function("Events: {E: {Type: HttpApi, Properties: {Auth: {Authorizer: AWS_IAM}}}}"), "AWS_IAM is not emulated"},
		{"API key", function("Events: {E: {Type: Api, Properties: {Path: /a, Method: get, Auth: {ApiKeyRequired: true}}}}"), "ApiKeyRequired is not emulated"},
		{"URL with IAM", function("FunctionUrlConfig: {AuthType: AWS_IAM}"), "AuthType AWS_IAM is not emulated"},
		{"streaming URL", function("FunctionUrlConfig: {AuthType: NONE, InvokeMode: RESPONSE_STREAM}"), "InvokeMode RESPONSE_STREAM is not emulated"},
		{"simple table", "Resources:\n  T:\n    Type: AWS::Serverless::SimpleTable\n", "use AWS::DynamoDB::Table"},
		{"table without key", "Resources:\n  T:\n    Type: AWS::DynamoDB::Table\n    Properties: {BillingMode: PAY_PER_REQUEST}\n", "KeySchema is missing"},
		{"broken YAML", "Resources: [", "t.yaml:"},
		{"empty", "", "the template is empty"},
		{"no resources", "Globals: {}", "no Resources section"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := template.Parse("t.yaml", []byte(tt.yaml), template.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestD1_UnknownParameterAndMissingFileAreErrors(t *testing.T) {
	_, err := template.Parse("t.yaml", []byte("Resources: {}"), template.Options{Parameters: map[string]string{"Typo": "x"}})
	if err == nil || !strings.Contains(err.Error(), "parameter Typo") {
		t.Errorf("error %v, want one that names the parameter", err)
	}
	if _, err := template.Read("nowhere.yaml", template.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one that wraps os.ErrNotExist", err)
	}
}

// The error tells a caller which value is missing.
func TestD1_AMissingValueIsNamedForTheCaller(t *testing.T) {
	for _, test := range []struct {
		name, yaml string
		want       template.MissingValueError
	}{
		{"parameter", "Parameters:\n  P: {Type: String}\n", template.MissingValueError{Parameters: []string{"P"}}},
		{"parameter in the store", "Parameters:\n  P: {Type: 'AWS::SSM::Parameter::Value<String>'}\n", template.MissingValueError{Parameters: []string{"P"}}},
		{"reference", "Parameters:\n  P: {Type: String, Default: '{{resolve:ssm:/shop/a}}'}\n", template.MissingValueError{References: []string{"ssm:/shop/a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := test.yaml + "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties: {FunctionName: !Ref P}\n"
			_, err := template.Parse("t.yaml", []byte(text), template.Options{})
			var missing *template.MissingValueError
			if !errors.As(err, &missing) || !slices.Equal(missing.Parameters, test.want.Parameters) || !slices.Equal(missing.References, test.want.References) {
				t.Errorf("error %v has %+v; want %+v", err, missing, test.want)
			}
		})
	}
}

// One error names all missing values, each once and with its position.
func TestD1_AllMissingValuesAreNamedAtOnce(t *testing.T) {
	_, err := template.Parse("t.yaml", []byte(`
Parameters:
  Seconds: {Type: Number}
  Stage: {Type: String}
  Subnets: {Type: CommaDelimitedList}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub "shop-${Stage}"
      Environment: {Variables: {STAGE: !Ref Stage, SUBNETS: !Join [",", !Ref Subnets], TOKEN: "{{resolve:ssm:/shop/token}}"}}
      Timeout: !Ref Seconds
  G:
    Type: AWS::Serverless::Function
    Properties: {FunctionName: "{{resolve:ssm:/shop/name}}"}
`), template.Options{})
	var missing *template.MissingValueError
	if !errors.As(err, &missing) {
		t.Fatalf("error %v", err)
	}
	slices.Sort(missing.Parameters)
	slices.Sort(missing.References)
	if want := []string{"Seconds", "Stage", "Subnets"}; !slices.Equal(missing.Parameters, want) {
		t.Errorf("parameters %q; want %q", missing.Parameters, want)
	}
	if want := []string{"ssm:/shop/name", "ssm:/shop/token"}; !slices.Equal(missing.References, want) {
		t.Errorf("references %q; want %q", missing.References, want)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 5 || slices.ContainsFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "t.yaml:") }) {
		t.Errorf("it says:\n%v", err)
	}
}

func TestD1_ReadsHowAFunctionIsBuiltAndRun(t *testing.T) {
	for name, test := range map[string]struct {
		properties, metadata string
		want                 template.Function
	}{
		"nothing":               {"", "", template.Function{}},
		"a folder":              {"CodeUri: orders/", "BuildMethod: makefile", template.Function{CodeURI: "orders/", BuildMethod: "makefile"}},
		"an object in a bucket": {"CodeUri: {Bucket: b, Key: k.zip}", "", template.Function{CodeURI: "s3://b/k.zip"}},
		"an image":              {"PackageType: Image", "DockerTag: v1", template.Function{PackageType: "Image"}},
		"inline code":           {"InlineCode: 'exports.handler = 1'", "", template.Function{InlineCode: true}},
		"a runtime":             {"Runtime: provided.al2023", "", template.Function{Runtime: "provided.al2023"}},
		"Managed Instances":     {"CapacityProviderConfig: {Arn: a, PerExecutionEnvironmentMaxConcurrency: 8}", "", template.Function{MaxConcurrency: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Metadata: {" + test.metadata + "}\n    Properties:\n      Timeout: 3\n      " + test.properties + "\n"
			sam, err := template.Parse("t.yaml", []byte(text), template.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := sam.Functions[0]
			got := template.Function{
				CodeURI: f.CodeURI, BuildMethod: f.BuildMethod, PackageType: f.PackageType, InlineCode: f.InlineCode,
				Runtime: f.Runtime, MaxConcurrency: f.MaxConcurrency,
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
