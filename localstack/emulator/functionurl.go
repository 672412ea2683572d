package emulator

import (
	"errors"
	"io"
	"net/http"
)

// functionURL is a Lambda function URL with AuthType NONE.
type functionURL struct {
	pool     *pool
	emulator *Emulator
}

func (u *functionURL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		u.refuse(w, err)
		return
	}
	inv := newInvocation(r.Context(), u.emulator.arn(u.pool.function.Name), nil)
	event := eventV2(r, body, inv)
	event.RouteKey = "$default"
	event.RequestContext.RouteKey = event.RouteKey
	event.RequestContext.Stage = "$default"
	event.RequestContext.AccountID = "anonymous"
	event.RequestContext.APIID = u.pool.function.LogicalID
	event.RequestContext.DomainPrefix = u.pool.function.LogicalID
	event.RequestContext.RequestID = inv.requestID
	w.Header().Set("X-Amzn-Requestid", inv.requestID)
	result, err := u.emulator.integrate(u.pool, inv, event, 0)
	if err != nil {
		u.refuse(w, err)
		return
	}
	if result.FunctionError != "" {
		u.badGateway(w)
		return
	}
	if err := sendV2(w, result.Payload, "application/json"); err != nil {
		u.emulator.log.printf("%s: %v", u.pool.function.LogicalID, err)
		u.badGateway(w)
	}
}

func (u *functionURL) refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrRequestTooLarge), errors.Is(err, errBodyTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case errors.Is(err, ErrTooManyRequests):
		refuse(w, http.StatusTooManyRequests, "Rate Exceeded.")
	default:
		u.emulator.log.printf("%s: %v", u.pool.function.LogicalID, err)
		u.badGateway(w)
	}
}

func (u *functionURL) badGateway(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, "Internal Server Error")
}
