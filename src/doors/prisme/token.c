/* Reads the name of a trusted source from its token. */
#include "doors/prisme/prisme_int.h"

bool token_read(struct str token, struct str key, int64_t now_s, char *ret_name, size_t size)
{
    json_t *claims = token_open(token, key, now_s, TOKEN_LIFE_S);
    struct str name = json_view(json_object_get(claims, "iss"));
    bool good;

    if (!name.p)
        name = json_view(json_object_get(claims, "sub"));
    good = name.n > 0 && str_to_cstr(name, ret_name, size);
    json_decref(claims);
    return good;
}
