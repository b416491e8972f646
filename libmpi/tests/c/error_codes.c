// ranks 1
#include "check.h"

static int last;

static void handler_function(MPI_Comm *comm, int *code, ...) { last = *code; }

int main(void) {
    /* Before MPI_Init. */
    int class, other, code, second, got, length;
    char text[MPI_MAX_ERROR_STRING], longer[MPI_MAX_ERROR_STRING + 1];
    CHECK(MPI_Add_error_class(&class) == MPI_SUCCESS && class > MPI_ERR_LASTCODE);
    CHECK(MPI_Add_error_code(class, &code) == MPI_SUCCESS && code > class);
    CHECK(MPI_Error_class(code, &got) == MPI_SUCCESS && got == class);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == 0 && text[0] == 0);
    CHECK(MPI_Add_error_string(code, "too hot") == MPI_SUCCESS);
    CHECK(MPI_Add_error_string(class, "the reactor") == MPI_SUCCESS);
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && !strcmp(text, "too hot") && length == 7);
    CHECK(MPI_Error_string(class, text, &length) == MPI_SUCCESS && !strcmp(text, "the reactor"));
    CHECK(MPI_Add_error_code(MPI_ERR_ARG, &second) == MPI_SUCCESS);
    CHECK(MPI_Error_class(second, &got) == MPI_SUCCESS && got == MPI_ERR_ARG);
    CHECK(MPI_Error_string(MPI_SUCCESS, text, &length) == MPI_SUCCESS && length > 0);
    CHECK(MPI_Error_class(MPI_ERR_LASTCODE, &got) == MPI_SUCCESS);
    /* Handlers get such codes. */
    MPI_Errhandler handler;
    CHECK(MPI_Comm_create_errhandler(handler_function, &handler) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == 0);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_SELF, code) == MPI_SUCCESS && last == code);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    /* Texts of any encoding, up to their greatest length. */
    memset(longer, '\xe9', MPI_MAX_ERROR_STRING - 1), longer[MPI_MAX_ERROR_STRING - 1] = 0;
    CHECK(MPI_Add_error_string(code, longer) == MPI_SUCCESS);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && !strcmp(text, longer));
    /* Removal, and errors. */
    memset(longer, 'x', MPI_MAX_ERROR_STRING), longer[MPI_MAX_ERROR_STRING] = 0;
    FAILS(MPI_Add_error_string(code, longer), MPI_ERR_ARG);
    FAILS(MPI_Add_error_string(code, NULL), MPI_ERR_ARG);
    FAILS(MPI_Add_error_string(MPI_ERR_ARG, "x"), MPI_ERR_ARG);
    FAILS(MPI_Add_error_code(code, &got), MPI_ERR_ARG);
    FAILS(MPI_Add_error_code(-5, &got), MPI_ERR_ARG);
    FAILS(MPI_Add_error_code(1000, &got), MPI_ERR_ARG);
    FAILS(MPI_Error_class(1000, &got), MPI_ERR_ARG);
    FAILS(MPI_Error_class(second + 1, &got), MPI_ERR_ARG);
    FAILS(MPI_Error_class(code, NULL), MPI_ERR_ARG);
    FAILS(MPI_Remove_error_class(class), MPI_ERR_ARG);
    FAILS(MPI_Remove_error_code(code), MPI_ERR_ARG);
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == 0);
    CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS);
    FAILS(MPI_Remove_error_class(class), MPI_ERR_ARG);
    CHECK(MPI_Remove_error_string(class) == MPI_SUCCESS && MPI_Remove_error_class(class) == MPI_SUCCESS);
    FAILS(MPI_Remove_error_code(code), MPI_ERR_ARG);
    FAILS(MPI_Remove_error_class(MPI_ERR_ARG), MPI_ERR_ARG);
    FAILS(MPI_Error_class(code, &got), MPI_ERR_ARG);
    CHECK(MPI_Add_error_class(&other) == MPI_SUCCESS && other > second);
    MPI_Finalize();
    CHECK(MPI_Error_class(MPI_ERR_TAG, &got) == MPI_SUCCESS && got == MPI_ERR_TAG);
    return 0;
}
