package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestF1_EachPartMakesItsOwnRecord(t *testing.T) {
	jwt := func(sub string) func(*request) {
		return func(in *request) {
			in.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": "i", "sub": sub}}}
		}
	}
	for name, change := range map[string]func(*request){
		"key":       func(in *request) { in.Headers["idempotency-key"] = "key-2" },
		"method":    func(in *request) { in.RequestContext.HTTP.Method = http.MethodPatch },
		"route":     func(in *request) { in.RouteKey = "POST /refunds" },
		"principal": jwt("somebody"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.send(t, first())
			other := first()
			change(&other)
			if out := r.send(t, other); out.StatusCode != http.StatusCreated || replayed(out) {
				t.Errorf("another %s got %+v", name, out)
			}
			if out := r.send(t, other); !replayed(out) {
				t.Errorf("another %s sent twice got %+v", name, out)
			}
			r.wantRuns(t, 2)
		})
	}
	t.Run("namespace", func(t *testing.T) {
		r := newRig(nil)
		r.send(t, first())
		r.guard = r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "other" })
		r.handler = r.guarded(nil)
		if out := r.send(t, first()); replayed(out) {
			t.Error("another namespace was replayed")
		}
	})
}

// The name of a parameter may change without an effect on completed keys. Any other difference
// makes another route.
func TestF1_AParametersNameDoesNotCount(t *testing.T) {
	g := lambdaidem.New(newFaulty())
	id := func(route string) string {
		return g.RecordID(lambdaidem.Identity{Method: "POST", Route: route, Path: "/asked/for", Key: "k"})
	}
	for _, same := range [][2]string{
		{"/payments/{id}", "/payments/{payment}"}, {"/{a}/x/{b}", "/{b}/x/{a}"}, {"/p/{payment-id}/{x.y}", "/p/{paymentID}/{z_1}"},
		{"/payments/{id}/{$}", "/payments/{payment}/{$}"},
	} {
		if id(same[0]) != id(same[1]) {
			t.Errorf("%s and %s are two records", same[0], same[1])
		}
	}
	seen := map[string]string{}
	for _, route := range []string{
		"/payments/{id}", "/payments/{id}/x", "/payments/x/{id}", "/{id}", "/{id}/{$}", "/{id}/{x}", "/{id}/$", "/payments/id", "/payments/{$}", "/payments/{id:int}",
		"/payments/{name:text}", "/payments/%7Bid%7D", "/payments/%7B%7D", "/payments/{id}.json", "/payments/x{id}", "/{proxy+}", "/payments/{a}{b}", "/payments/{}",
	} {
		if other, ok := seen[id(route)]; ok && (route != "/payments/{}" || other != "/payments/{id}") { // no router has an unnamed parameter
			t.Errorf("%s and %s are one record", route, other)
		}
		seen[id(route)] = route
	}
	operation := func(name string) string { return g.RecordID(lambdaidem.Identity{Operation: name, Key: "k"}) }
	if operation("/a/{x}") == operation("/a/{y}") {
		t.Error("two operations are one")
	}
}

// The same holds for events and for net/http: the answer replays, and the scope shows the route as
// it is now.
func TestF1_ARenamedParameterReplays(t *testing.T) {
	r := newRig(nil)
	in := first()
	in.RouteKey, in.RawPath = "POST /payments/{id}", "/payments/1"
	one := r.send(t, in)
	in.RouteKey = "POST /payments/{payment}"
	wantReplay(t, r.send(t, in), one)

	g := lambdaidem.New(newFaulty(), quiet, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	post := func(pattern string) *httptest.ResponseRecorder {
		mux := http.NewServeMux()
		mux.Handle(pattern, g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })))
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments/1", strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		return w
	}
	post("POST /payments/{id}")
	if w := post("POST /payments/{payment}"); w.Header().Get(mark) != "true" {
		t.Errorf("after the parameter was renamed: %d %s", w.Code, w.Body)
	}
}

func TestF1_OneTemplateIsOneRoute(t *testing.T) {
	r := newRig(nil)
	in := first()
	in.RouteKey, in.RawPath = "POST /payments/{id}/refunds", "/payments/1/refunds"
	r.send(t, in)
	in.RawPath = "/payments/2/refunds"
	// The path is part of the payload (F3), not of the record's id.
	wantProblem(t, r.send(t, in), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

func TestF1_CatchAllsAreNoTemplate(t *testing.T) {
	for _, route := range []string{"$default", "", "POST /{proxy+}", "ANY /a/{rest+}", "POST /"} {
		t.Run(route, func(t *testing.T) {
			r := newRig(nil)
			in := first()
			in.RouteKey = route
			r.send(t, in)
			in.RawPath = "/refunds"
			if out := r.send(t, in); out.StatusCode != http.StatusCreated || replayed(out) {
				t.Errorf("another path got %+v", out)
			}
			if out := r.send(t, in); !replayed(out) {
				t.Errorf("the same path got %+v", out)
			}
		})
	}
}

func TestF1_ATemplateIsNoPath(t *testing.T) {
	r := newRig(nil)
	a, b := first(), first()
	a.RouteKey, a.RawPath = "POST /p/{id}", "/p/{id}"
	b.RouteKey, b.RawPath = "$default", "/p/{id}"
	r.send(t, a)
	if out := r.send(t, b); replayed(out) || out.StatusCode != http.StatusCreated {
		t.Errorf("another route got %+v", out)
	}
}

// A call of Do and a request never share a record, whatever their names are.
func TestF1_CallsAndRequestsAreApart(t *testing.T) {
	r := newRig(nil)
	r.send(t, first())
	ran := false
	_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "/payments", Key: "key-1"}, func(context.Context) (int, error) {
		ran = true
		return 1, nil
	})
	if err != nil || !ran {
		t.Errorf("the call ran: %v, error %v", ran, err)
	}
}

// No two different combinations of parts give the same id.
func TestF1_NoChoiceOfPartsCollides(t *testing.T) {
	part := rapid.StringMatching(`[ab|:#% /]{0,4}`)
	type parts struct{ namespace, principal, route, key string }
	id := func(t *testing.T, p parts) (string, string) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Namespace = "n" + p.namespace })
		if _, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: p.route + "o", Principal: p.principal, Key: "k" + p.key + "k"},
			func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		c := r.store.allClaims()[0]
		return c.ID, c.Scope
	}
	// No separator is safe, because a part may contain it.
	gap := strings.Repeat("\x00", 8)
	one, _ := id(t, parts{principal: "p", route: gap + "q"})
	two, _ := id(t, parts{principal: "p" + gap, route: "q"})
	if one == two {
		t.Error("parts that hold a separator collide")
	}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) parts {
			return parts{part.Draw(rt, name+" namespace"), part.Draw(rt, name+" principal"), part.Draw(rt, name+" route"), part.Draw(rt, name+" key")}
		}
		a, b := draw("a"), draw("b")
		idA, scopeA := id(t, a)
		idB, scopeB := id(t, b)
		if (a == b) != (idA == idB) {
			rt.Fatalf("%+v and %+v have the ids %s and %s", a, b, idA, idB)
		}
		a.key, b.key = "", ""
		if (a == b) != (scopeA == scopeB) {
			rt.Fatalf("%+v and %+v have the scopes %q and %q", a, b, scopeA, scopeB)
		}
	})
}

func TestD4_IdsCarryAPrefixAndHideTheKey(t *testing.T) {
	r := newRig(nil)
	r.send(t, first())
	c := r.store.allClaims()[0]
	if !strings.HasPrefix(c.ID, "lambdaidem#") || len(c.ID) != len("lambdaidem#")+43 {
		t.Errorf("the id is %q", c.ID)
	}
	if strings.Contains(c.ID, "key-1") || c.Scope != "test POST /payments " {
		t.Errorf("the id is %q and the scope %q", c.ID, c.Scope)
	}
}

func TestD4_ForeignRecordsAreRefused(t *testing.T) {
	for _, failOpen := range []bool{false, true} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.FailOpen = failOpen })
		r.store.failAlways(acquire, refused(lambdaidem.ReasonForeign))
		out := r.send(t, first())
		wantProblem(t, out, http.StatusInternalServerError, lambdaidem.ErrRecordForeign)
		wantNoInternals(t, out)
		r.wantRuns(t, 0)
		r.wantEvents(t, lambdaidem.EventUnreadable)
	}
}

// A damaged answer in a record of the guard isn't replayed.
func TestR1_DamagedAnswersAreRefused(t *testing.T) {
	for _, value := range []string{"", "null", "{", `{"a":1}`, `[]`, `{"statusCode":200,"bytes":true,"body":"not base64"}`} {
		r := newRig(nil)
		r.store.Store = damaged{r.store.Store, []byte(value)}
		r.send(t, first())
		wantProblem(t, r.send(t, first()), http.StatusInternalServerError, lambdaidem.ErrAnswerUnreadable)
		r.wantRuns(t, 1)
	}
}

type damaged struct {
	lambdaidem.Store
	value []byte
}

func (s damaged) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	r.Value = s.value
	return s.Store.Complete(ctx, l, r)
}

// principalCase is a caller, as the events of several sources show it, and the principal that the
// guard finds in them.
type principalCase struct {
	name string
	want string // "403" if the caller is refused
	v1   func(*events.APIGatewayProxyRequest)
	v2   func(*events.APIGatewayV2HTTPRequest)
	url  func(*events.LambdaFunctionURLRequest)
	alb  func(*events.ALBTargetGroupRequest)
}

type (
	authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	jwtAuth    = events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription
	iamAuth    = events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription
	cognito    = events.APIGatewayV2HTTPRequestContextAuthorizerCognitoIdentity
)

const (
	role = "arn:aws:sts::123456789012:assumed-role/Payers/session"
	// pool is the ARN that every user of a Cognito identity pool has.
	pool = "arn:aws:sts::123456789012:assumed-role/Cognito/CognitoIdentityCredentials"
)

type (
	clientCert  = events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert
	httpAPICert = events.APIGatewayV2HTTPRequestContextAuthenticationClientCert
)

// Only what the gateway has verified counts, in the documented order.
var principalCases = []principalCase{
	{name: "v1 nobody", want: "", v1: func(*events.APIGatewayProxyRequest) {}},
	{name: "v1 jwt", want: "jwt:https://idp/|alice", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "https://idp/", "sub": "alice"}, "principalId": "x"}
	}},
	{name: "v1 jwt before iam", want: "jwt:i|s", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "i", "sub": "s"}}
		e.RequestContext.Identity.UserArn = role
	}},
	{name: "v1 jwt without sub", want: "403", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "i"}}
	}},
	{name: "v1 jwt with a sub that is no text", want: "403", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"claims": map[string]any{"iss": "i", "sub": 7}}
	}},
	{name: "v1 iam before authorizer", want: "iam:" + role, v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.UserArn = role
		e.RequestContext.Authorizer = map[string]any{"principalId": "p"}
	}},
	{name: "v1 iam of a Cognito pool", want: "iam:" + pool + "|eu-central-1:1", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.UserArn, e.RequestContext.Identity.CognitoIdentityID = pool, "eu-central-1:1"
	}},
	{name: "v1 iam of a Cognito pool, nobody named", want: "403", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.UserArn = pool
		e.RequestContext.Authorizer = map[string]any{"principalId": "p"}
	}},
	{name: "v1 certificate before key", want: "mtls:CN=a%7Cb|CN=ca", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.ClientCert = &clientCert{SubjectDN: "CN=a|b", IssuerDN: "CN=ca"}
		e.RequestContext.Identity.APIKeyID = "k"
	}},
	{name: "v1 certificate without subject", want: "403", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.ClientCert = &clientCert{IssuerDN: "CN=ca"}
		e.RequestContext.Identity.APIKeyID = "k"
	}},
	{name: "v1 Cognito before certificate", want: "cognito:c", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.ClientCert = &clientCert{SubjectDN: "CN=a", IssuerDN: "CN=ca"}
		e.RequestContext.Identity.CognitoIdentityID = "c"
	}},
	{name: "v1 authorizer before Cognito", want: "authorizer:p", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"principalId": "p"}
		e.RequestContext.Identity.CognitoIdentityID = "c"
	}},
	{name: "v1 authorizer without principal", want: "403", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Authorizer = map[string]any{"tenant": "t"}
	}},
	{name: "v1 Cognito before key", want: "cognito:c", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.CognitoIdentityID, e.RequestContext.Identity.APIKeyID = "c", "k"
	}},
	{name: "v1 key id, never the key", want: "apikey:id", v1: func(e *events.APIGatewayProxyRequest) {
		e.RequestContext.Identity.APIKeyID, e.RequestContext.Identity.APIKey = "id", "secret"
	}},
	{name: "v1 what a client sends", want: "", v1: func(e *events.APIGatewayProxyRequest) {
		e.Headers["Authorization"], e.Headers["X-Api-Key"], e.Headers["X-Amzn-Oidc-Identity"] = "Bearer a.b.c", "k", "me"
		e.RequestContext.Identity.APIKey, e.RequestContext.Identity.SourceIP, e.RequestContext.Identity.UserAgent = "k", "1.2.3.4", "ua"
	}},

	{name: "v2 nobody", want: "", v2: func(*events.APIGatewayV2HTTPRequest) {}},
	{name: "v2 authorizer without context", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		if err := json.Unmarshal([]byte(`{"authorizer": {"lambda": null}}`), &e.RequestContext); err != nil {
			panic(err)
		}
	}},
	{name: "v2 jwt before all", want: "jwt:i|s", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "sub": "s"}},
			IAM: &iamAuth{UserARN: role}, Lambda: map[string]any{"principalId": "p"}}
	}},
	{name: "v2 jwt without sub", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "client_id": "c"}}}
	}},
	{name: "v2 jwt without iss", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"sub": "s"}}}
	}},
	{name: "v2 iam", want: "iam:" + role, v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{IAM: &iamAuth{UserARN: role}}
	}},
	{name: "v2 iam of a Cognito pool", want: "iam:" + role + "|c1", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{IAM: &iamAuth{UserARN: role, CognitoIdentity: cognito{IdentityID: "c1"}}}
	}},
	{name: "v2 iam of a Cognito pool, nobody named", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		if err := json.Unmarshal([]byte(`{"authorizer": {"iam": {"userArn": "`+pool+`", "cognitoIdentity": null}}}`), &e.RequestContext); err != nil {
			panic(err)
		}
	}},
	{name: "v2 iam without ARN", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{IAM: &iamAuth{AccessKey: "a"}}
	}},
	{name: "v2 certificate", want: "mtls:CN=a|CN=ca", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authentication.ClientCert = httpAPICert{SubjectDN: "CN=a", IssuerDN: "CN=ca", ClientCertPem: "PEM"}
	}},
	{name: "v2 certificate without its PEM", want: "mtls:CN=a|CN=ca", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authentication.ClientCert = httpAPICert{SubjectDN: "CN=a", IssuerDN: "CN=ca"}
	}},
	{name: "v2 certificate with its issuer alone", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authentication.ClientCert = httpAPICert{IssuerDN: "CN=ca"}
	}},
	{name: "v2 certificate without subject", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authentication.ClientCert = httpAPICert{ClientCertPem: "PEM"}
	}},
	{name: "v2 jwt before certificate", want: "jwt:i|s", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authentication.ClientCert = httpAPICert{SubjectDN: "CN=a", IssuerDN: "CN=ca"}
		e.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "sub": "s"}}}
	}},
	{name: "v2 authorizer", want: "authorizer:p", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{Lambda: map[string]any{"principalId": "p"}}
	}},
	{name: "v2 authorizer without principal", want: "403", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{Lambda: map[string]any{"tenant": "t"}}
	}},
	{name: "v2 Cognito alone", want: "cognito:c1", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{IAM: &iamAuth{CognitoIdentity: cognito{IdentityID: "c1"}}}
	}},
	{name: "v2 what a client sends", want: "", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["authorization"], e.Headers["x-forwarded-for"] = "Bearer a.b.c", "1.2.3.4"
		e.RequestContext.HTTP.SourceIP = "1.2.3.4"
	}},

	{name: "URL nobody", want: "", url: func(*events.LambdaFunctionURLRequest) {}},
	{name: "URL iam", want: "iam:" + role, url: func(e *events.LambdaFunctionURLRequest) {
		e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: role}}
	}},
	{name: "URL iam of a Cognito pool", want: "403", url: func(e *events.LambdaFunctionURLRequest) {
		e.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: pool, CallerID: "AROA:CognitoIdentityCredentials"}}
	}},
	{name: "ALB vouches for nobody", want: "", alb: func(e *events.ALBTargetGroupRequest) {
		e.Headers["x-amzn-oidc-identity"], e.Headers["x-amzn-oidc-data"] = "me", "a.b.c"
	}},
	{name: "parts that hold a separator", want: "jwt:a%7Cb%25|c", v2: func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "a|b%", "sub": "c"}}}
	}},
}

// send sends the case's event, and returns the answer's status and body.
func (c principalCase) send(t *testing.T, g *lambdaidem.Guard) (int, string) {
	t.Helper()
	ctx, headers := t.Context(), map[string]string{"idempotency-key": "k"}
	switch {
	case c.v1 != nil:
		e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a", Headers: headers}
		c.v1(&e)
		out, err := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 201}, nil
		})(ctx, e)
		return out.StatusCode, errText(err) + out.Body
	case c.v2 != nil:
		e := events.APIGatewayV2HTTPRequest{RouteKey: "POST /a", RawPath: "/a", Headers: headers}
		e.RequestContext.HTTP.Method = "POST"
		c.v2(&e)
		out, err := g.APIGatewayV2(func(context.Context, request) (response, error) { return response{StatusCode: 201}, nil })(ctx, e)
		return out.StatusCode, errText(err) + out.Body
	case c.url != nil:
		e := events.LambdaFunctionURLRequest{RawPath: "/a", Headers: headers}
		e.RequestContext.HTTP.Method = "POST"
		c.url(&e)
		out, err := g.FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
			return events.LambdaFunctionURLResponse{StatusCode: 201}, nil
		})(ctx, e)
		return out.StatusCode, errText(err) + out.Body
	default:
		e := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/a", Headers: headers}
		c.alb(&e)
		out, err := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
			return events.ALBTargetGroupResponse{StatusCode: 201}, nil
		})(ctx, e)
		return out.StatusCode, errText(err) + out.Body
	}
}

func TestF2_PrincipalIsWhatTheGatewayVouchesFor(t *testing.T) {
	for _, c := range principalCases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(nil)
			status, body := c.send(t, r.guard)
			if c.want == "403" {
				if status != http.StatusForbidden || !strings.Contains(body, string(lambdaidem.ErrPrincipalUnknown)) {
					t.Errorf("the answer is %d %s, want 403", status, body)
				}
				r.wantEvents(t, lambdaidem.EventNoPrincipal)
				return
			}
			if status != http.StatusCreated {
				t.Fatalf("the answer is %d %s", status, body)
			}
			escaped := strings.ReplaceAll(c.want, "%", "%25") // as in a scope
			if got := r.store.allClaims()[0].Scope; !strings.HasSuffix(got, " "+escaped) {
				t.Errorf("the scope is %q, want the principal %q", got, c.want)
			}
		})
	}
}

// A caller never sees, blocks or completes another caller's record.
func TestF2_TwoPrincipalsNeverMeet(t *testing.T) {
	as := func(sub string) request {
		in := first()
		in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "sub": sub}}}
		return in
	}
	var r *rig
	r = newRig(func(ctx context.Context, in request) (response, error) {
		sub := in.RequestContext.Authorizer.JWT.Claims["sub"]
		if sub == "alice" { // while Alice's attempt is in progress, Bob's is not blocked
			if out, err := r.handler(ctx, as("bob")); err != nil || out.Body != "for bob" || replayed(out) {
				t.Errorf("Bob got %+v, %v", out, err)
			}
		}
		return response{StatusCode: 201, Body: "for " + sub}, nil
	})
	for _, sub := range []string{"alice", "bob", "alice"} {
		if out := r.send(t, as(sub)); out.Body != "for "+sub {
			t.Errorf("%s got %q", sub, out.Body)
		}
	}
	r.wantRuns(t, 2)
}

func TestF2_PrincipalByFunction(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Principal = func(_ context.Context, r *lambdaidem.Request) (string, error) {
			switch tenant := r.Values("X-Tenant"); {
			case len(tenant) == 0:
				return "", lambdaidem.Reject(http.StatusUnauthorized, "who_are_you", "Say who you are.")
			case tenant[0] == "broken":
				return "", errors.New("secret: the directory is down")
			default:
				return tenant[0], nil
			}
		}
	})
	in := first()
	out := r.send(t, in)
	wantProblem(t, out, http.StatusUnauthorized, "who_are_you")
	in.Headers["x-tenant"] = "broken"
	out = r.send(t, in)
	wantProblem(t, out, http.StatusForbidden, lambdaidem.ErrPrincipalUnknown)
	wantNoInternals(t, out)
	without := newRig(nil, func(o *lambdaidem.Options) {
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) {
			return "", &lambdaidem.Error{Code: "no_status", Err: errWire}
		}
	})
	out = without.send(t, first())
	wantProblem(t, out, http.StatusForbidden, lambdaidem.ErrPrincipalUnknown)
	wantNoInternals(t, out)
	in.Headers["x-tenant"] = "t1"
	r.send(t, in)
	in.Headers["x-tenant"] = "t2"
	if out := r.send(t, in); replayed(out) {
		t.Error("one tenant got another's answer")
	}
	r.wantRuns(t, 2)
}

func TestF2_AFunctionThatNamesNobody(t *testing.T) {
	nobody := func(o *lambdaidem.Options) {
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", nil }
	}
	r := newRig(nil, nobody)
	wantProblem(t, r.send(t, first()), http.StatusForbidden, lambdaidem.ErrPrincipalUnknown)
	r.wantRuns(t, 0)
	r = newRig(nil, nobody, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
		t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
	}
}

// Options.Principal decides even if the gateway has found a caller.
func TestF2_FunctionComesBeforeTheGateway(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Principal = func(_ context.Context, r *lambdaidem.Request) (string, error) { return "own " + r.Principal, nil }
	})
	in := first()
	in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"client_id": "c"}}}
	if out := r.send(t, in); out.StatusCode != http.StatusCreated {
		t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
	}
}

func TestF2_MiddlewareWantsToKnowWhoCalls(t *testing.T) {
	defer func() {
		text, ok := recover().(string)
		if !ok || !strings.Contains(text, "Options.Principal") || !strings.Contains(text, "Options.AnonymousCallers") {
			t.Errorf("it panicked with %q", text)
		}
	}()
	newRig(nil).guard.Middleware(http.NotFoundHandler())
	t.Error("it did not panic")
}
