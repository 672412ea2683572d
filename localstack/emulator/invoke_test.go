package emulator_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

func sdk(e *emulator.Emulator) *lambda.Client {
	return lambda.New(lambda.Options{
		BaseEndpoint:     aws.String(e.InvokeURL()),
		Region:           "eu-west-1",
		Credentials:      aws.AnonymousCredentials{},
		HTTPClient:       client,
		RetryMaxAttempts: 1,
	})
}

func TestD1_InvokeAPIByTheSDK(t *testing.T) {
	e, _ := start(t, nil)
	api := sdk(e)
	arn := "arn:aws:lambda:eu-west-1:000000000000:function:probe"
	custom := base64.StdEncoding.EncodeToString([]byte(`{"custom": {"who": "ann"}}`))
	for _, name := range []string{"probe", "Probe", "probe:$LATEST", arn, arn + ":$LATEST", "000000000000:function:probe"} {
		out, err := api.Invoke(t.Context(), &lambda.InvokeInput{
			FunctionName: aws.String(name), Payload: []byte(`{"do":"about"}`),
			LogType: types.LogTypeTail, ClientContext: aws.String(custom),
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if out.StatusCode != 200 || out.FunctionError != nil || aws.ToString(out.ExecutedVersion) != "$LATEST" {
			t.Errorf("%s: %+v", name, out)
		}
		var a about
		if err := json.Unmarshal(out.Payload, &a); err != nil {
			t.Fatal(err)
		}
		if a.ARN != arn || a.Custom["who"] != "ann" {
			t.Errorf("%s: ARN %s, client context %v", name, a.ARN, a.Custom)
		}
		tail, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult))
		if err != nil || !strings.Contains(string(tail), "REPORT RequestId: "+a.RequestID) {
			t.Errorf("%s: log result %q, %v", name, tail, err)
		}
	}
}

func TestD1_InvokeAPIFunctionError(t *testing.T) {
	e, _ := start(t, nil)
	out, err := sdk(e).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("probe"), Payload: []byte(`{"do":"error"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if out.StatusCode != 200 || aws.ToString(out.FunctionError) != "Unhandled" ||
		string(out.Payload) != `{"errorMessage":"went wrong","errorType":"errorString"}` {
		t.Errorf("%d %s %s", out.StatusCode, aws.ToString(out.FunctionError), out.Payload)
	}
	if out.LogResult != nil {
		t.Error("a log that was not asked for")
	}
}

func TestD1_InvokeAPITypes(t *testing.T) {
	e, _ := start(t, nil)
	api := sdk(e)
	out, err := api.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("probe"), InvocationType: types.InvocationTypeDryRun})
	if err != nil || out.StatusCode != 204 {
		t.Errorf("DryRun: %+v, %v", out, err)
	}
	if n := len(e.Processes("Probe")); n != 0 {
		t.Errorf("DryRun started %d processes", n)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	out, err = api.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String("probe"), InvocationType: types.InvocationTypeEvent,
		Payload: fmt.Appendf(nil, `{"do":"until","file":%q}`, gate),
	})
	if err != nil || out.StatusCode != 202 {
		t.Errorf("Event: %+v, %v", out, err)
	}
	touch(t, gate) // only now can it finish: the 202 did not wait
	eventually(t, "the function has finished", func() bool { _, err := os.Stat(gate + ".done"); return err == nil })
}

func TestD1_InvokeAPIRefusals(t *testing.T) {
	e, _ := start(t, nil)
	api := sdk(e)
	large := []byte(`"` + strings.Repeat("x", 6*1024*1024) + `"`)
	tests := []struct {
		name   string
		in     lambda.InvokeInput
		status int
		code   string
	}{
		{"unknown function", lambda.InvokeInput{FunctionName: aws.String("nobody")}, 404, "ResourceNotFoundException"},
		{"unknown version", lambda.InvokeInput{FunctionName: aws.String("probe:7")}, 404, "ResourceNotFoundException"},
		{"unknown alias", lambda.InvokeInput{FunctionName: aws.String("probe"), Qualifier: aws.String("live")}, 404, "ResourceNotFoundException"},
		{"not JSON", lambda.InvokeInput{FunctionName: aws.String("probe"), Payload: []byte("{")}, 400, "InvalidRequestContentException"},
		{"too large", lambda.InvokeInput{FunctionName: aws.String("probe"), Payload: large}, 413, "RequestEntityTooLargeException"},
		{
			"too large for Event",
			lambda.InvokeInput{FunctionName: aws.String("probe"), Payload: large[5*1024*1024-1:], InvocationType: types.InvocationTypeEvent},
			413, "RequestEntityTooLargeException",
		},
		{"unknown type", lambda.InvokeInput{FunctionName: aws.String("probe"), InvocationType: "Later"}, 400, "InvalidParameterValueException"},
		{"client context", lambda.InvokeInput{FunctionName: aws.String("probe"), ClientContext: aws.String("%")}, 400, "InvalidRequestContentException"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := api.Invoke(t.Context(), &tt.in)
			var answer interface{ HTTPStatusCode() int }
			var apiError smithy.APIError
			if !errors.As(err, &answer) || !errors.As(err, &apiError) {
				t.Fatalf("error %v", err)
			}
			if answer.HTTPStatusCode() != tt.status || apiError.ErrorCode() != tt.code {
				t.Errorf("%d %s, want %d %s", answer.HTTPStatusCode(), apiError.ErrorCode(), tt.status, tt.code)
			}
			if apiError.ErrorMessage() == "" {
				t.Error("no message")
			}
		})
	}
	for _, path := range []string{"/2015-03-31/functions/", "/2015-03-31/functions/probe"} {
		if response, body := send(t, "POST", e.InvokeURL()+path, ""); response.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
}

func TestD1_InvokeUnknownFunction(t *testing.T) {
	e, _ := start(t, nil)
	if _, err := e.Invoke(t.Context(), "Nobody", nil); !errors.Is(err, emulator.ErrFunctionNotFound) {
		t.Errorf("error %v, want ErrFunctionNotFound", err)
	}
	if p := e.Processes("Nobody"); p != nil {
		t.Errorf("processes %v", p)
	}
}

// A web page from another server invokes no function; programs do, and pages of the same server.
func TestD1_InvokeAPIRefusesOtherPages(t *testing.T) {
	e, _ := start(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(e.InvokeURL(), "http://"), ":")
	for name, test := range map[string]struct {
		name, value string
		status      int
	}{
		"a program":                    {"Accept", "*/*", http.StatusOK},
		"by the other name":            {"Host", "localhost:" + port, http.StatusOK},
		"a page of this server":        {"Origin", e.InvokeURL(), http.StatusOK},
		"another page":                 {"Origin", "http://evil.example", http.StatusForbidden},
		"another page, without origin": {"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"another host (DNS rebinding)": {"Host", "evil.example:" + port, http.StatusMisdirectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.InvokeURL()+"/2015-03-31/functions/Probe/invocations", strings.NewReader(`{"do":"about"}`))
			if err != nil {
				t.Fatal(err)
			}
			if r.Header.Set(test.name, test.value); test.name == "Host" {
				r.Host = test.value
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close() //nolint:errcheck // it is not read
			if resp.StatusCode != test.status {
				t.Errorf("%s; want %d", resp.Status, test.status)
			}
		})
	}
}
