package emulator

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// invokePrefix is where the Lambda Invoke API lives.
const invokePrefix = "/2015-03-31/functions/"

// maxEventBytes is the quota of an asynchronous invocation: 1 MB.
const maxEventBytes = 1024 * 1024

// invokeAPI is the Lambda API's Invoke action, so that the AWS CLI and the
// SDKs can call functions by endpoint. It takes any credentials.
type invokeAPI struct {
	emulator *Emulator
}

func (a *invokeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := newUUID()
	w.Header().Set("X-Amzn-Requestid", requestID)
	name, isInvoke := strings.CutSuffix(strings.TrimPrefix(r.URL.EscapedPath(), invokePrefix), "/invocations")
	if !isInvoke || r.Method != http.MethodPost {
		apiError(w, http.StatusNotFound, "UnknownOperationException", "the emulator knows one action of the Lambda API: POST "+invokePrefix+"NAME/invocations")
		return
	}
	if unescaped, err := url.PathUnescape(name); err == nil {
		name = unescaped
	}
	name, qualifier := parseReference(name)
	qualifier = cmp.Or(r.URL.Query().Get("Qualifier"), qualifier, "$LATEST")
	p := a.emulator.pool(name)
	if p == nil || qualifier != "$LATEST" { // there are neither versions nor aliases
		apiError(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+a.emulator.arn(name)+":"+qualifier)
		return
	}
	kind := cmp.Or(r.Header.Get("X-Amz-Invocation-Type"), "RequestResponse")
	limit := maxRequestBytes
	if kind == "Event" {
		limit = maxEventBytes
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		apiError(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not read the request body: "+err.Error())
		return
	}
	if len(payload) > limit {
		apiError(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException",
			fmt.Sprintf("The payload is too large for the %s invocation type (limit %d bytes)", kind, limit))
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if !json.Valid(payload) {
		apiError(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}
	inv := newInvocation(r.Context(), a.emulator.arn(p.function.Name), payload)
	inv.requestID = requestID
	if context := r.Header.Get("X-Amz-Client-Context"); context != "" {
		decoded, err := base64.StdEncoding.DecodeString(context)
		if err != nil || !json.Valid(decoded) {
			apiError(w, http.StatusBadRequest, "InvalidRequestContentException", "Client context must be a valid Base64-encoded JSON object.")
			return
		}
		inv.clientContext = strings.Join(strings.Fields(string(decoded)), " ") // a header has no line breaks
	}
	a.invoke(w, r, p, inv, kind)
}

func (a *invokeAPI) invoke(w http.ResponseWriter, r *http.Request, p *pool, inv *invocation, kind string) {
	switch kind {
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	case "Event":
		// One attempt: Lambda's retries of asynchronous invocations are left
		// out. The answer channel is buffered, so nobody need read it.
		if _, err := p.start(inv); err != nil {
			invokeError(w, err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	case "RequestResponse":
		result, err := a.emulator.invoke(r.Context(), p, inv)
		if err != nil {
			invokeError(w, err)
			return
		}
		header := http.Header{"Content-Type": {"application/json"}, "X-Amz-Executed-Version": {"$LATEST"}}
		if result.FunctionError != "" {
			header.Set("X-Amz-Function-Error", result.FunctionError)
		}
		if r.Header.Get("X-Amz-Log-Type") == "Tail" {
			header.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString(result.LogTail))
		}
		send(w, http.StatusOK, header, result.Payload)
	default:
		apiError(w, http.StatusBadRequest, "InvalidParameterValueException", "X-Amz-Invocation-Type must be RequestResponse, Event or DryRun, got "+kind)
	}
}

func invokeError(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrTooManyRequests):
		apiError(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
	case errors.Is(err, ErrRequestTooLarge):
		apiError(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", err.Error())
	default:
		apiError(w, http.StatusInternalServerError, "ServiceException", err.Error())
	}
}

// apiError writes an error as the Lambda API does (AWS restJson1 protocol).
func apiError(w http.ResponseWriter, status int, kind, message string) {
	send(w, status, http.Header{"Content-Type": {"application/json"}, "X-Amzn-Errortype": {kind}},
		mustJSON(map[string]string{"Type": "User", "message": message, "Message": message}))
}

// functionReference matches what the Lambda API takes as FunctionName: a name,
// a partial ARN (ACCOUNT:function:NAME) or an ARN, each with a qualifier or
// without.
var functionReference = regexp.MustCompile(
	`^(?:(?:arn:[a-z-]+:lambda:[a-z0-9-]+:)?[0-9]{12}:function:)?([A-Za-z0-9_-]+)(?::([A-Za-z0-9_$-]+))?$`)

// parseReference splits a reference into name and qualifier; "" means none.
func parseReference(reference string) (name, qualifier string) {
	parts := functionReference.FindStringSubmatch(reference)
	if parts == nil {
		return reference, ""
	}
	return parts[1], parts[2]
}
