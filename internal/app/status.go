package app

import (
	"net/http"

	"github.com/claudomator/claudomator/internal/work"
)

// httpStatus is the one map from the domain's codes to HTTP, for every surface
// that speaks it.
func httpStatus(code work.Code) int {
	switch code {
	case work.Invalid:
		return http.StatusUnprocessableEntity
	case work.NotFound:
		return http.StatusNotFound
	case work.Conflict, work.Illegal:
		return http.StatusConflict
	case work.Unauthenticated:
		return http.StatusUnauthorized
	case work.Forbidden:
		return http.StatusForbidden
	case work.Exhausted:
		return http.StatusTooManyRequests
	case work.Unavailable:
		return http.StatusServiceUnavailable
	case work.Timeout:
		return http.StatusGatewayTimeout
	case work.Internal:
	}
	return http.StatusInternalServerError
}
