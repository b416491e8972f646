// ranks 1
#include "check.h"

/* The interface for tools: it is empty, and its errors go to no error handler, so the job goes on. */
int main(void) {
    int number = -1, index, provided = -1, length = 0;
    MPI_T_pvar_session session;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    /* Before MPI_Init, and with the error handlers as they are at the start. */
    CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED && number == -1);
    CHECK(MPI_T_cvar_get_index("x", &index) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL) == MPI_T_ERR_INVALID);
    start();
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_SINGLE);
    CHECK(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_pvar_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_event_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_source_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_category_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_category_changed(&number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_category_get_num(NULL) == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_get_index("x", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_category_get_info(0, NULL, &length, NULL, &length, &number, &number, &number)
          == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_T_ERR_OUT_OF_SESSIONS);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    MPI_Finalize();
    CHECK(MPI_T_pvar_get_num(&number) == MPI_SUCCESS);
    CHECK(MPI_T_finalize() == MPI_SUCCESS && MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
